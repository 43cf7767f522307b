# SPDX-License-Identifier: GPL-2.0
"""`lab completion`: completes the lab's command line in bash, and in zsh with bashcompinit.

The script is made from the parser, so that a new command or option is in it. It knows words only: what the lab would
have to be asked for, such as the commits of `lab prose --at`, it leaves to the shell, which completes files.
"""

import argparse

from . import reference

_SCRIPT = """# Completion of scripts/lab; `eval "$(scripts/lab completion)"` switches it on.
_lab() {{
	local command=${{COMP_WORDS[1]}} now=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} words=

	COMPREPLY=()
	if ((COMP_CWORD == 1)); then
		words="{commands}"
	else
		case $command:$before in
{values}
		*)
			case $command in
{words}
			esac
			[[ $now == -* ]] || words=" $words" words="${{words// -+([^ ])}}"
			;;
		esac
	fi
	COMPREPLY=($(compgen -W "$words" -- "$now"))
}}
shopt -s extglob
complete -o default -F _lab lab
"""


def script(parser: argparse.ArgumentParser, more: dict[str, list[str]]) -> str:
    """For bash. More: words that the arguments of a command, or the value of an option, may be."""
    values, words = [], []
    for name, command in sorted(reference.parsers(parser).items()):
        options: list[str] = []
        arguments = list(more.get(name, []))
        for action in command._actions:
            choices = [str(choice) for choice in action.choices or ()]
            long = [option for option in action.option_strings if option.startswith("--")]
            options += long
            if not action.option_strings:
                arguments += choices
            elif action.nargs != 0:
                # 6.12|6.1|PATH: words, and what is a path
                of = choices or more.get(long[0] if long else "", []) or [
                    word for word in str(action.metavar or "").split("|") if not word.isupper()]
                values.append(f"\t\t{'|'.join(f'{name}:{option}' for option in action.option_strings)}) "
                              f"words=\"{' '.join(of)}\" ;;")
        words.append(f"\t\t\t{name}) words=\"{' '.join([*options, *arguments])}\" ;;")
    return _SCRIPT.format(commands=" ".join(sorted(reference.parsers(parser))), values="\n".join(values),
                          words="\n".join(words))


def add_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]", parser: argparse.ArgumentParser,
                more: dict[str, list[str]]) -> None:
    """`completion` on the command line of scripts/lab."""
    def _print(_args: argparse.Namespace) -> int:
        print(script(parser, more), end="")
        return 0

    commands.add_parser("completion", help="print a script that completes this command line in bash and zsh"
                        ).set_defaults(function=_print)

import { Argument, type Command } from 'commander';
import { type Place, placesOf } from './completion-places.js';

const HELP = `
It completes commands and options, not values. Add one of these lines to what your shell reads at its start:

  source <(muster completion bash)      # ~/.bashrc
  source <(muster completion zsh)       # ~/.zshrc, behind compinit
  muster completion fish | source       # ~/.config/fish/config.fish`;

const SHELLS = { bash, zsh, fish } as const;
type Shell = keyof typeof SHELLS;

export function registerCompletion(program: Command): void {
  program
    .command('completion')
    .description('print a script by which the Tab key of your shell completes commands and options')
    .addArgument(new Argument('<shell>', 'shell that runs the script').choices(Object.keys(SHELLS)))
    .addHelpText('after', HELP)
    .action((shell: Shell) => console.log(SHELLS[shell](placesOf(program))));
}

// Each script holds every place, so that Tab starts no program. It walks the words before the cursor to the place where they lead, and never
// evaluates them: whoever presses Tab behind $(…) has not run that yet.

function bash(places: readonly Place[]): string {
  const offers = places.map(
    ({ at, commands, options }) =>
      `    ${quoted(at)}) commands=${quoted(commands.map(({ name }) => name).join(' '))} options=${quoted(options.flatMap(({ flags }) => flags).join(' '))} ;;`,
  );
  return `# Completion of muster for bash: source <(muster completion bash)
_muster() {
  local at='' skip='' word commands='' options='' i
  local current=\${COMP_WORDS[COMP_CWORD]}
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if [[ -n $skip ]]; then skip=''; continue; fi
    case "$at $word" in
      ${patterns(steps(places))}) at="$at $word" ;;
      ${patterns(valued(places))}) skip=1 ;;
    esac
  done
  COMPREPLY=()
  # A value: bash offers files.
  [[ -n $skip ]] && return
  case $at in
${offers.join('\n')}
  esac
  if [[ $current == -* || -z $commands ]]; then commands=$options; fi
  COMPREPLY=($(compgen -W "$commands" -- "$current"))
}
complete -o default -F _muster muster`;
}

function zsh(places: readonly Place[]): string {
  const described = ({ name, description }: { name: string; description: string }) =>
    quoted(`${name}:${description.replaceAll('\\', '\\\\').replaceAll(':', '\\:')}`);
  const offers = places.map(({ at, commands, options }) => {
    const flags = options.flatMap(({ flags: names, description }) => names.map((name) => ({ name, description })));
    return `    ${quoted(at)}) commands=(${commands.map(described).join(' ')}) options=(${flags.map(described).join(' ')}) ;;`;
  });
  return `#compdef muster
# Completion of muster for zsh: source <(muster completion zsh)
_muster() {
  local at='' skip='' word i
  local -a commands options
  for ((i = 2; i < CURRENT; i++)); do
    word=$words[i]
    if [[ -n $skip ]]; then skip=''; continue; fi
    case "$at $word" in
      ${patterns(steps(places))}) at="$at $word" ;;
      ${patterns(valued(places))}) skip=1 ;;
    esac
  done
  if [[ -n $skip ]]; then _files; return; fi
  case $at in
${offers.join('\n')}
  esac
  if [[ $words[CURRENT] == -* || $#commands -eq 0 ]]; then _describe -o option options; else _describe command commands; fi
}
if [[ $funcstack[1] == _muster ]]; then _muster "$@"; else compdef _muster muster; fi`;
}

function fish(places: readonly Place[]): string {
  const offers = places.flatMap(({ at, commands, options }) => {
    const here = `complete -c muster -n ${fishQuoted(`__muster_at ${fishQuoted(at)}`)}`;
    return [
      ...commands.map(({ name, description }) => `${here} -f -a ${fishQuoted(name)} -d ${fishQuoted(description)}`),
      ...options.map(({ flags, description, takesValue }) => {
        const names = flags.map((flag) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`)).join(' ');
        return `${here} ${names}${takesValue ? ' -r' : ' -f'} -d ${fishQuoted(description)}`;
      }),
    ];
  });
  const cases = (texts: readonly string[]) => texts.map(fishQuoted).join(' ');
  return `# Completion of muster for fish: muster completion fish | source
function __muster_at
  set -l at ''
  set -l skip ''
  set -l words (commandline -opc)
  set -e words[1]
  for word in $words
    if test -n "$skip"
      set skip ''
      continue
    end
    switch "$at $word"
      case ${cases(steps(places))}
        set at "$at $word"
      case ${cases(valued(places))}
        set skip 1
    end
  end
  test "$at" = "$argv[1]"
end
${offers.join('\n')}`;
}

/** The places but the first: who types their last word behind the others gets there. */
function steps(places: readonly Place[]): string[] {
  return places.map(({ at }) => at).filter((at) => at !== '');
}

/** Options behind which a value follows, each behind its place. */
function valued(places: readonly Place[]): string[] {
  return places.flatMap(({ at, options }) =>
    options.filter(({ takesValue }) => takesValue).flatMap(({ flags }) => flags.map((flag) => `${at} ${flag}`)),
  );
}

const patterns = (texts: readonly string[]): string => texts.map(quoted).join('|');

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

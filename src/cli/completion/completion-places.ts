import type { Command } from 'commander';

/** Where the words of a command line lead, and what may follow there. */
export interface Place {
  /** The commands' names, each behind a space: ` runs show`; empty before the first. */
  readonly at: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly OfferedOption[];
}

interface OfferedOption {
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
}

/** Every place of the program, from the outside in. A group takes the options of the command that it is by itself, too. */
export function placesOf(program: Command): Place[] {
  const places: Place[] = [];
  const visit = (command: Command, at: string) => {
    const help = command.createHelp();
    const commands = help.visibleCommands(command);
    const byItself = command.commands.find((one) => one.name() === defaultOf(command));
    const options = [command, ...(byItself ? [byItself] : [])].flatMap((one) => offeredOptions(one));
    places.push({
      at,
      commands: commands.map((one) => ({ name: one.name(), description: help.subcommandDescription(one) })),
      options: options.filter(({ flags }, i) => options.findIndex((other) => other.flags[0] === flags[0]) === i),
    });
    for (const one of commands) if (one.name() !== 'help') visit(one, `${at} ${one.name()}`);
  };
  visit(program, '');
  return places;
}

function offeredOptions(command: Command): OfferedOption[] {
  const help = command.createHelp();
  return help.visibleOptions(command).map((option) => ({
    flags: [option.long, option.short].filter((flag): flag is string => typeof flag === 'string'),
    description: help.optionDescription(option),
    takesValue: option.required || option.optional,
  }));
}

/** Commander keeps it to itself, and knows no other way to ask. */
function defaultOf(command: Command): string | null | undefined {
  return (command as unknown as Readonly<Record<string, string | null | undefined>>)['_defaultCommandName'];
}

/** One instruction of a Dockerfile, its options (`--from=build`) taken apart from the rest. */
export interface Instruction {
  readonly name: string;
  readonly options: Readonly<Record<string, string>>;
  /** The rest, on one line. */
  readonly text: string;
  /** Where it begins, counted from 1. */
  readonly line: number;
}

/** The instructions of a Dockerfile. Comments and continued lines are understood; here-documents are refused. */
export function parseDockerfile(source: string): Instruction[] {
  const instructions: Instruction[] = [];
  let pending = '';
  let begin = 0;
  for (const [i, raw] of source.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (pending === '') begin = i + 1;
    pending += line.replace(/\\$/, '');
    if (line.endsWith('\\')) continue;
    instructions.push(parseInstruction(pending.trim(), begin));
    pending = '';
  }
  if (pending !== '') throw new Error(`Dockerfile:${begin}: the last instruction has no end`);
  return instructions;
}

function parseInstruction(source: string, line: number): Instruction {
  if (source.includes('<<')) throw new Error(`Dockerfile:${line}: here-documents are not understood`);
  const [, name = '', rest = ''] = /^(\S+)\s*(.*)$/.exec(source) ?? [];
  const options: Record<string, string> = {};
  const text = rest.replace(/^(?:--[a-z-]+(?:=\S*)?\s+)+/, (all) => {
    for (const option of all.trim().split(/\s+/)) {
      const [key = '', value = ''] = option.slice(2).split('=', 2);
      options[key] = value;
    }
    return '';
  });
  return { name: name.toUpperCase(), options, text, line };
}

/** The words of an instruction, in either of Docker's forms: a JSON array, or words where quotes may hold blanks. */
export function words(text: string): string[] {
  if (text.startsWith('[')) return JSON.parse(text) as string[];
  return [...text.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replaceAll(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}

/** `KEY=value` pairs of ENV and LABEL. */
export function pairs(text: string): Record<string, string> {
  return Object.fromEntries(
    words(text).map((word) => {
      const [, key, value] = /^([^=]+)=(.*)$/.exec(word) ?? [];
      if (key === undefined || value === undefined) throw new Error(`"${word}" is not of the form KEY=value`);
      return [key, value];
    }),
  );
}

/** `NAME` or `NAME=default` of ARG, as a record of one member. */
export function argument(text: string): Record<string, string> {
  return text.includes('=') ? pairs(text) : { [text]: '' };
}

/** Puts build arguments in place of `${NAME}`. Throws for a name that was not declared, which Docker would take as empty. */
export function withArguments(text: string, args: Readonly<Record<string, string>>): string {
  const filled = text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = args[name];
    if (value === undefined) throw new Error(`there is no ARG ${name}`);
    return value;
  });
  if (filled.includes('$')) throw new Error('only variables like ${NAME} are understood');
  return filled;
}

import type { Statement } from '../connection/step.js';

/** Puts values in the places of a statement's names. */
export type NamedStatement<Name extends string> = (values: Readonly<Record<Name, unknown>>) => Statement;

/**
 * Reads a statement whose parameters are written `:name`; a cast (`::int`) is none. A name takes one parameter, however often it is written: a
 * page's bytes are sent once, and the text is made once.
 */
export function named<Name extends string>(text: string): NamedStatement<Name> {
  const names: Name[] = [];
  const numbered = text.replaceAll(/(?<!:):([a-z]\w*)/gi, (_, name: Name) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return (values) => ({ text: numbered, values: names.map((name) => values[name]) });
}

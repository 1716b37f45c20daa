import type { Statement } from '../connection/step.js';

/**
 * Reads a statement whose parameters are written `:name`; a cast (`::int`) is none. A name takes one parameter, however often it is written: a
 * page's bytes are sent once, and the text is made once. Returns what puts the values in their places.
 */
export function named<Name extends string>(text: string): (values: { readonly [N in Name]: unknown }) => Statement {
  const names: Name[] = [];
  const numbered = text.replaceAll(/(?<!:):([a-z]\w*)/gi, (_, name: Name) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return (values) => ({ text: numbered, values: names.map((name) => values[name]) });
}

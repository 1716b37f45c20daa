/** A statement whose parameters have names. */
export interface NamedStatement<Name extends string> {
  /** With `$1` to `$n` in the place of the names. */
  readonly sql: string;
  /** The values in the statement's order. */
  values(byName: { readonly [N in Name]: unknown }): unknown[];
}

/** Reads a statement whose parameters are written `:name`. A cast (`::int`) is none. Each name takes one parameter, however often it is written. */
export function named<Name extends string>(text: string): NamedStatement<Name> {
  const names: Name[] = [];
  const sql = text.replaceAll(/(?<!:):([a-z]\w*)/gi, (_, name: Name) => {
    if (!names.includes(name)) names.push(name);
    return `$${names.indexOf(name) + 1}`;
  });
  return { sql, values: (byName) => names.map((name) => byName[name]) };
}

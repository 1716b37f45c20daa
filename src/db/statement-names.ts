/** Statements with a name, at most. What comes later is parsed and planned each time: texts of ever new lengths end there. */
const MOST = 500;

/**
 * Names statements by their text, so that each connection parses and plans one only the first times it meets it. '' = no name.
 */
export function statementNames(): (statement: { readonly sql: string }) => string {
  const names = new Map<string, string>();
  return ({ sql }) => {
    const known = names.get(sql);
    if (known !== undefined) return known;
    if (names.size === MOST) return '';
    const name = `muster_${names.size}`;
    names.set(sql, name);
    return name;
  };
}

/**
 * What a migration takes away from processes of the version before, or demands of what they write: the names of such clauses. New tables may be as strict as
 * they like, since no such process writes them. It reads text, not SQL: what it names by mistake is written another way, or said to be incompatible.
 */
export function contractionsIn(sql: string): string[] {
  const text = withoutComments(sql);
  const made = new Set([...text.matchAll(/\bCREATE TABLE (?:IF NOT EXISTS )?(\S+)/gi)].map(([, name]) => name));
  return text.split(';').flatMap((statement) => contractionsOf(statement.trim(), made));
}

function contractionsOf(statement: string, made: ReadonlySet<string | undefined>): string[] {
  const dropped = /\bDROP (TABLE|VIEW|MATERIALIZED VIEW|FUNCTION|SCHEMA|SEQUENCE|TYPE|TRIGGER)\b/i.exec(statement);
  if (dropped) return [`DROP ${dropped[1]!.toUpperCase()}`];
  const [, indexed] = /\bCREATE UNIQUE INDEX\b.*?\bON (\S+)/is.exec(statement) ?? [];
  if (indexed !== undefined) return made.has(indexed) ? [] : ['CREATE UNIQUE INDEX'];
  const [, table, actions] = /\bALTER (?:TABLE|VIEW) (?:IF EXISTS )?(?:ONLY )?(\S+)\s+(.*)/is.exec(statement) ?? [];
  if (actions === undefined || made.has(table)) return [];
  return splitActions(actions).flatMap((action) => CONTRACTIONS.find(([pattern]) => pattern.test(action))?.[1] ?? []);
}

/** The first that matches an action of ALTER TABLE says what it is; undefined: nothing is taken away. */
const CONTRACTIONS: readonly (readonly [RegExp, string | undefined])[] = [
  [/^DROP CONSTRAINT\b/i, undefined],
  [/^DROP COLUMN\b/i, 'DROP COLUMN'],
  [/^DROP\b/i, 'DROP'],
  [/^RENAME\b/i, 'RENAME'],
  [/^ALTER\b.*?\bTYPE\b/is, 'ALTER COLUMN TYPE'],
  [/^ALTER\b.*\bSET NOT NULL\b/is, 'SET NOT NULL'],
  [/^ALTER\b.*\bDROP DEFAULT\b/is, 'DROP DEFAULT'],
  [/^ADD (?:CONSTRAINT|CHECK|UNIQUE|PRIMARY|FOREIGN|EXCLUDE)\b/i, 'ADD CONSTRAINT'],
  [/^ADD\b(?!.*\bDEFAULT\b)(?!.*\bGENERATED\b).*\bNOT NULL\b/is, 'ADD COLUMN NOT NULL without DEFAULT'],
];

/** The actions of one ALTER TABLE, which commas outside brackets separate. */
function splitActions(text: string): string[] {
  const actions = [''];
  let depth = 0;
  for (const character of text) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (character === ',' && depth === 0) actions.push('');
    else actions[actions.length - 1] += character;
  }
  return actions.map((action) => action.trim());
}

/** Comments and texts say nothing of the kind, but for a text that is a statement: one that is executed. */
function withoutComments(sql: string): string {
  const text = sql.replaceAll(/--[^\n]*|\/\*.*?\*\//gs, ' ');
  return text.replaceAll(/'(?:[^']|'')*'/g, (quoted) =>
    /^'\s*(?:ALTER|DROP|CREATE)\s\S+\s.*%/is.test(quoted) ? `;${quoted.slice(1, -1)};` : "''",
  );
}

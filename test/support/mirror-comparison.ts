import type { Database } from '../../src/db/connection/database.js';
import type { Resource } from '../../src/sandbox/company-spec.js';
import type { Sandbox } from '../../src/sandbox/sandbox.js';

/** The living rows of a list, as PostgreSQL prints them, sorted. Compare with `upstream`. */
export async function mirrored({ pool }: Database, resource: string, companyId: string): Promise<string[]> {
  const { rows } = await pool.query<{ text: string }>(
    `SELECT data::text AS text FROM mirror."${resource}" WHERE company_id = $1 AND deleted_at IS NULL`,
    [companyId],
  );
  return rows.map(({ text }) => text).toSorted();
}

/** The records that the provider has now, printed as PostgreSQL would print them, sorted. */
export function upstream(sandbox: Sandbox, resource: Resource, companyId: string): string[] {
  return sandbox.records(companyId, resource).map(asPostgresPrints).toSorted();
}

/** The text of a jsonb, made independently of PostgreSQL from the record's tokens: no digit passes through a number. */
function asPostgresPrints(json: string): string {
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)!;
  let at = 0;
  const value = (): string => {
    const token = tokens[at++]!;
    if (token !== '[' && token !== '{') return token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token;
    const parts: { name: string; text: string }[] = [];
    const close = token === '[' ? ']' : '}';
    while (tokens[at] !== close) {
      let name = '';
      if (token === '{') {
        name = JSON.parse(tokens[at]!) as string;
        at += 2;
      }
      parts.push({ name, text: value() });
      if (tokens[at] === ',') at++;
    }
    at++;
    if (token === '[') return `[${parts.map(({ text }) => text).join(', ')}]`;
    parts.sort(
      (a, b) => Buffer.byteLength(a.name) - Buffer.byteLength(b.name) || Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)),
    );
    return `{${parts.map(({ name, text }) => `${JSON.stringify(name)}: ${text}`).join(', ')}}`;
  };
  return value();
}

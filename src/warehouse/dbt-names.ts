import { createHash } from 'node:crypto';

/** Bytes that PostgreSQL keeps of a name; dbt refuses longer ones. All names here are ASCII. */
const LONGEST = 63;
const HASH = 8;

/** The name of the source. */
export const SOURCE = 'muster';

/** The staging model of a view. */
export const staged = (view: string) => shorten(`stg_muster__${view}`);
export const historical = (resource: string) => `muster__${resource}_history`;
export const changed = (resource: string) => `muster__${resource}_changes`;
export const proved = (resource: string) => `muster__${resource}_proved`;

/** The column that names the record to which a column refers. */
export const keyOf = (column: string) => shorten(`_${column}_key`);

/** A name that is too long keeps its beginning, and a hash tells it from others that begin alike. */
function shorten(name: string): string {
  if (name.length <= LONGEST) return name;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, HASH);
  return `${name.slice(0, LONGEST - HASH - 1).replace(/_+$/, '')}_${hash}`;
}

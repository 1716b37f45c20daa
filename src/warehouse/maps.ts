// Which objects are maps: their keys are data and not names, so that a column for each would come without end.
import type { KeyRow } from '../db/tables/schema-columns.js';

/** This share of an object's keys decides what it is. */
const SHARE = 0.9;
/** An object with this many keys that look like values is a map. Fewer could be three years of an ordinary object. */
const FEWEST_VALUES = 3;
/** An object with this many keys that look like ids, or that are new in nearly every record, is a map. */
const FEWEST_NAMES = 20;
/** A key is new in nearly every record if at most this share of the objects has it. */
const RARE = 1 / 20;
/** No ordinary object has this many keys. */
const MOST_MEMBERS = 500;

/** Days, times, months, quarters, numbers, phone numbers, e-mail addresses, addresses of the web, GUIDs, ULIDs, and other long hexadecimal ids. */
const VALUES: readonly RegExp[] = [
  /^[+#]?\(?\d+(?:[ .,:/_()+-]+\d+)*\)?$/,
  /^\d{4}-\d\d-\d\d[T ].*$/,
  /^\d{4}[ /_-]?[WQHSM]\d{1,2}(?:-\d)?$/i,
  /^[WQHSM]\d{1,2}[ /_-]?\d{4}$/i,
  /^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ ./_-]?(?:\d{2}|\d{4})$/i,
  /^(?:\d{1,2}[ ./_-])?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ ./_-]\d{4}$/i,
  /^\d{4}[ /_-]?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*$/i,
  /^[^@\s]+@[^@\s]+$/,
  /^(?:https?|urn|mailto|tel):/i,
  /^[{(]?[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}[)}]?$/i,
  /^[0-7](?=.*\d.*\d)[0-9A-HJKMNP-TV-Z]{25}$/i,
  /^(?=.*\d)[0-9a-f]{16,}$/i,
];

/** Words with a number of three digits or more (`emp_1234`), and long texts with many digits, as ids of other kinds are. */
const IDS: readonly RegExp[] = [
  /^[a-z]+(?:[ .:/#_-]?[a-z]+)?[ .:/#_-]?\d{3,}$/i,
  /^[a-z]{1,10}[_:/#-](?=.*\d)[0-9a-z]{8,}$/i,
  /^(?=(?:.*\d){4})[0-9a-z_-]{16,}$/i,
];

/** The members of objects under one key. */
interface Members {
  /** How many objects were seen. */
  readonly objects: number;
  /** The keys in them, and how often each was seen. */
  readonly keys: readonly { readonly name: string; readonly times: number }[];
  /** How many keys there are in all: no fewer than in `keys`. */
  readonly total: number;
}

/** Whether the objects are a map. */
export function isMap({ objects, keys, total }: Members): boolean {
  const most = (count: number, fewest: number) => count >= fewest && count >= SHARE * keys.length;
  const values = keys.filter(({ name }) => VALUES.some((form) => form.test(name))).length;
  if (most(values, FEWEST_VALUES) || total >= MOST_MEMBERS) return true;
  const ids = keys.filter(({ name }) => [...VALUES, ...IDS].some((form) => form.test(name))).length;
  return most(ids, FEWEST_NAMES) || most(keys.filter(({ times }) => times <= RARE * objects).length, FEWEST_NAMES);
}

/**
 * The keys among these whose objects are maps and are not known as such. `newKeys`: how many new keys the objects of a key were sighted with; `rows` may
 * lack most of them. A record, or an element of an array, is never a map itself.
 */
export function findMaps(rows: Iterable<KeyRow>, newKeys: (path: readonly string[]) => number): KeyRow[] {
  const holders = new Map<string, KeyRow>();
  const inside = new Map<string, KeyRow[]>();
  for (const row of rows) {
    if ((row.kinds.object ?? 0) > 0 && !row.isKeptWhole) holders.set(JSON.stringify(row.path), row);
    const around = JSON.stringify(row.path.slice(0, -1));
    const others = inside.get(around);
    if (others) others.push(row);
    else inside.set(around, [row]);
  }
  return [...holders].flatMap(([key, holder]) => {
    const keys = (inside.get(key) ?? []).map(({ path, values, nulls }) => ({ name: path.at(-1)!, times: values + nulls }));
    const total = Math.max(keys.length, newKeys(holder.path));
    return isMap({ objects: holder.kinds.object!, keys, total }) ? [holder] : [];
  });
}

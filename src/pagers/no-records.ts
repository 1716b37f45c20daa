import { isObject, plainName } from './around.js';
import type { NoRecords } from './parsed-response.js';

/** The value in the place of the records of a response that has no array there; undefined where that is no spelling of "no records". */
export function noRecordsAt(response: unknown, path: readonly string[]): NoRecords | undefined {
  let holder = response;
  for (const [depth, name] of path.entries()) {
    if (depth > 0 && holder === null) return 'missing';
    if (!isObject(holder)) return undefined;
    if (!Object.hasOwn(holder, name)) return 'missing';
    holder = (holder as Record<string, unknown>)[name];
  }
  if (holder === null) return 'null';
  // A response that is an empty object says nothing at all.
  return path.length > 0 && isObject(holder) && Object.keys(holder).length === 0 ? 'empty' : undefined;
}

/** The fault of the place of the records of a response without an array there, in a message's words. */
export function noArrayAt(response: unknown, path: readonly string[]): string {
  let holder = response;
  for (const [depth, name] of path.entries()) {
    if (!isObject(holder) || !Object.hasOwn(holder, name)) return `${path.slice(0, depth + 1).join('.')} is missing`;
    holder = (holder as Record<string, unknown>)[name];
  }
  return `${path.join('.') || 'the answer itself'} is not an array`;
}

/** Members that hold arrays of other things than records, as `plainName` has them. */
const ASIDE = new Set(['links', 'error', 'errors', 'warnings', 'messages', 'notices']);
const MOST_DEPTH = 5;

/**
 * The place of an array that may hold the records of a response without any where the entry looks: one that holds something, or, with
 * `evenEmpty`, any. Named from the response's root.
 */
export function arrayElsewhere(
  response: unknown,
  evenEmpty: boolean,
  isPassedOver: (member: string) => boolean,
): string | undefined {
  const find = (value: unknown, path: string, depth: number): string | undefined => {
    if (!isObject(value) || depth > MOST_DEPTH) return undefined;
    for (const [name, inner] of Object.entries(value)) {
      const member = `${path}${name}`;
      if (ASIDE.has(plainName(name)) || isPassedOver(member)) continue;
      if (Array.isArray(inner) && (evenEmpty || inner.length > 0)) return member;
      const found = find(inner, `${member}.`, depth + 1);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  return find(response, '', 0);
}

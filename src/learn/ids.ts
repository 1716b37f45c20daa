import { isObject } from '../core/json.js';
import { valueAt } from '../pagers/fields.js';
import type { SeenRecord } from './seen-page.js';

/** A candidate as a catalogue entry has it: a member, a dot path, or several members together. */
export type IdCandidate = string | readonly string[];

/** Levels of objects in which an id is looked for. */
const MOST_DEPTH = 3;
/** Candidates are looked for in this many records; the likeliest are then checked in all records. */
const FEW = 200;
const MOST_SINGLE = 6;
/** The most members tried in combination. */
const MOST_TOGETHER = 7;
const GUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * The members that are set and different in every record, names that look like ids first; if there is none, two or three members together.
 * `list`: name of the list, since its singular may be part of the id's name.
 */
export function idCandidates(records: readonly SeenRecord[], list: string): readonly IdCandidate[] {
  const few = records.slice(0, FEW);
  const [first] = few;
  if (!first) return [];
  const ranked = scalarsIn(first, '', 1)
    .filter((path) => few.every((record) => keyPart(record, path) !== undefined))
    .map((path) => ({ path, rank: rankOf(path, keyPart(first, path)!, list) }))
    .toSorted((a, b) => a.rank - b.rank);
  const isRight = (candidate: IdCandidate) => tellsApart(few, candidate) && tellsApart(records, candidate);
  const single = ranked.filter(({ path, rank }) => rank < NO_ID && tellsApart(few, path)).slice(0, MOST_SINGLE);
  const right = single.map(({ path }) => path).filter(isRight);
  if (right.length > 0) return right;
  const together = ranked.filter(({ rank }) => rank < NO_PART).slice(0, MOST_TOGETHER);
  const found = combinationsOf(together.map(({ path }) => path)).find(isRight);
  return found ? [found] : [];
}

/** The key of a record by this candidate; undefined if the record lacks a member of it. */
function keyOf(record: SeenRecord, candidate: IdCandidate): string | undefined {
  if (typeof candidate === 'string') return keyPart(record, candidate);
  const parts = candidate.map((path) => keyPart(record, path));
  return parts.includes(undefined) ? undefined : JSON.stringify(parts);
}

/** The keys of a page's records; for a record without one, its text. */
export function keysOf(records: readonly SeenRecord[], candidate: IdCandidate | undefined): string[] {
  return records.map((record) => (candidate && keyOf(record, candidate)) ?? textOf(record));
}

function textOf(record: SeenRecord): string {
  try {
    return JSON.stringify(record);
  } catch {
    // The record is nested deeper than the stack allows.
    return '';
  }
}

/** Whether every record has the candidate, and no two records the same. */
export function tellsApart(records: readonly SeenRecord[], candidate: IdCandidate): boolean {
  const keys = records.map((record) => keyOf(record, candidate));
  return !keys.includes(undefined) && new Set(keys).size === records.length;
}

function keyPart(record: SeenRecord, path: string): string | undefined {
  const value = valueAt(record, path);
  return (typeof value === 'string' && value !== '') || typeof value === 'number' ? String(value) : undefined;
}

function scalarsIn(value: SeenRecord, path: string, depth: number): string[] {
  return Object.entries(value).flatMap(([name, inner]) => {
    if (/\s/.test(name)) return [];
    if (isObject(inner)) return depth < MOST_DEPTH ? scalarsIn(inner, `${path}${name}.`, depth + 1) : [];
    return typeof inner === 'string' || typeof inner === 'number' ? [`${path}${name}`] : [];
  });
}

/** The name of a member with this rank or a higher one rules out an id. */
const NO_ID = 50;
/** The name of a member with this rank or a higher one rules out even a part of an id. */
const NO_PART = 100;
const DEEPER = 6;

function rankOf(path: string, value: string, list: string): number {
  const parts = path.split('.');
  const named = parts.at(-1)!.toLowerCase() === 'value' && parts.length > 1 ? parts.at(-2)! : parts.at(-1)!;
  const name = named
    .replace(/^@.*\./, '')
    .toLowerCase()
    .replaceAll(/[_-]/g, '');
  const depth = (parts.length - 1) * DEEPER;
  if (name.startsWith('@')) return NO_PART;
  if (name === 'uid') return depth;
  if (name === 'id') return 1 + depth;
  if (['guid', 'uuid', 'key', 'oid'].includes(name)) return 2 + depth;
  const singular = list
    .toLowerCase()
    .replaceAll(/[^a-z]/g, '')
    .replace(/ies$/, 'y')
    .replace(/s$/, '');
  if (singular !== '' && [`${singular}id`, `${singular}uid`, `${singular}guid`].includes(name)) return 3 + depth;
  if (singular !== '' && [`${singular}number`, `${singular}no`, `${singular}code`].includes(name)) return 5 + depth;
  if (/(id|guid|uuid)$/.test(name)) return 8 + depth;
  if (GUID.test(value)) return 10 + depth;
  if (/(number|no|nr|code|reference)$/.test(name)) return 12 + depth;
  return /(date|from|start|end|year|month|week|day|type|period|line|seq|position|version)/.test(name) ? NO_ID + depth : NO_PART;
}

function combinationsOf(paths: readonly string[]): (readonly string[])[] {
  const pairs = paths.flatMap((a, i) => paths.slice(i + 1).map((b) => [a, b]));
  const triples = paths.flatMap((a, i) => paths.slice(i + 1).flatMap((b, j) => paths.slice(i + j + 2).map((c) => [a, b, c])));
  return [...pairs, ...triples];
}

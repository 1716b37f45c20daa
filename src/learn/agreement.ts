import type { Endpoint } from '../catalogue/endpoint.js';
import type { Finding } from './learned-list.js';
import type { Rehearsal } from './rehearsal.js';

/** Compares the catalogue's own entry with the one that was found, except for the page size, which is a matter of taste. */
export function agreement(known: Endpoint | undefined, found: Endpoint | undefined, { requests }: Rehearsal): readonly Finding[] {
  if (!known || !found) return [];
  const [says, seen] = [known, found].map((endpoint) => membersOf(endpoint)) as [Members, Members];
  const differing = [...new Set([...Object.keys(says), ...Object.keys(seen)])].filter((member) => says[member] !== seen[member]);
  const ids = known.id.some((each) => JSON.stringify(each) === JSON.stringify(found.id[0]));
  const all = [...differing, ...(ids ? [] : ['id'])];
  const text =
    all.length === 0
      ? "The catalogue's entry agrees."
      : `The catalogue's entry differs in ${all.join(', ')}: compare it with this one, which was rehearsed.`;
  return [{ about: 'catalogue', says: text, requests }];
}

type Members = Readonly<Record<string, string>>;

/** The members that decide how the list is read, each as a text. */
function membersOf({ method, base, path, query, body, pager, envelope, fields }: Endpoint): Members {
  const { size: _, ...paging } = pager;
  const all = { method, base, path, query, body, envelope, ...prefixed('pager', paging), ...prefixed('fields', fields ?? {}) };
  return Object.fromEntries(
    Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, JSON.stringify(value)]])),
  );
}

function prefixed(prefix: string, members: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [`${prefix}.${name}`, value]));
}

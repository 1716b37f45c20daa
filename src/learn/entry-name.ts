import { endpointOf } from './entry.js';

/** Segments of a path that name an action, not a thing. */
const VERBS = /^(list|search|query|find|all|index|legacy)$/i;
const MOST_LENGTH = 36;

/** A name for the list at a path, which is also a valid table name: the last segment that names a thing. */
export function entryNameOf(path: string): string {
  const segments = path.split('/').filter((segment) => /^[A-Za-z]/.test(segment) && !VERBS.test(segment));
  const words = (segments.at(-1) ?? 'list')
    .replace(/\(.*$/, '')
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .toLowerCase();
  const name =
    words
      .replaceAll(/[^a-z\d]+/g, '_')
      .replace(/^_+|_+$/g, '')
      .slice(0, MOST_LENGTH) || 'list';
  const { endpoint } = endpointOf(name, { method: 'GET', path: '/{company_id}', pager: { style: 'odata', size: 1 } });
  return endpoint ? name : `${name}_list`;
}

/** The places of a page's values as a catalogue entry writes them; docs/configuration.md has the table. */
export interface FieldNames {
  readonly data?: string | undefined;
  readonly total?: string | undefined;
  readonly hasNext?: string | undefined;
  readonly next?: string | undefined;
  /** Members around the records that mean nothing, whatever they are called: dot paths, or `header NAME`. */
  readonly ignore?: readonly string[] | undefined;
}

/** Where one value of a page stands. */
export type Place =
  | { readonly kind: 'nowhere' }
  /** A dot path from the envelope; member names may hold dots themselves. */
  | { readonly kind: 'member'; readonly path: string }
  /** A response header, in lower case. */
  | { readonly kind: 'header'; readonly name: string }
  /** A member of the page's last record. */
  | { readonly kind: 'last-record'; readonly member: string };

export const NOWHERE: Place = { kind: 'nowhere' };

/** Reads `none`, `header NAME`, `last MEMBER`, or else a dot path. */
export function placeOf(text: string): Place {
  if (text === 'none') return NOWHERE;
  const [, what, name] = /^(header|last) +(\S+)$/.exec(text) ?? [];
  if (what === 'header') return { kind: 'header', name: name!.toLowerCase() };
  if (what === 'last') return { kind: 'last-record', member: name! };
  return { kind: 'member', path: text };
}

/**
 * The value at a dot path; undefined when there is none. A name as a whole goes before its parts, so that `@odata.count` is found
 * where it is one member.
 */
export function valueAt(holder: unknown, path: string): unknown {
  if (typeof holder !== 'object' || holder === null) return undefined;
  if (Object.hasOwn(holder, path)) return (holder as Record<string, unknown>)[path];
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const name = path.slice(0, dot);
    if (!Object.hasOwn(holder, name)) continue;
    const value = valueAt((holder as Record<string, unknown>)[name], path.slice(dot + 1));
    if (value !== undefined) return value;
  }
  return undefined;
}

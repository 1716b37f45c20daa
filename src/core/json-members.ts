// The members of a JSON text, each with its value as text: parsing would round numbers.

/** A member by its dot path. */
export interface JsonMember {
  readonly path: string;
  /** The value as JSON text. */
  readonly value: string;
}

export interface MemberChange {
  readonly path: string;
  /** Absent where the record had no such member, as `after` where it has none any more. */
  readonly before?: string;
  readonly after?: string;
}

/** Objects within objects are members of their own up to this depth; a deeper one is a value. */
const DEEPEST = 6;

/** The members of an object in their order; those of an object in it one by one. A text that is no object is one member without a name. */
export function membersOf(json: string): JsonMember[] {
  return flatten(json.trim(), '', 0);
}

/** The members that differ by their text, in the order of paths. */
export function changedMembers(before: string, after: string): MemberChange[] {
  const old = new Map(Array.from(membersOf(before), ({ path, value }) => [path, value]));
  const now = new Map(Array.from(membersOf(after), ({ path, value }) => [path, value]));
  return [...new Set([...old.keys(), ...now.keys()])]
    .filter((path) => old.get(path) !== now.get(path))
    .toSorted()
    .map((path) => {
      const [was, is] = [old.get(path), now.get(path)];
      return { path, ...(was !== undefined && { before: was }), ...(is !== undefined && { after: is }) };
    });
}

function flatten(json: string, path: string, depth: number): JsonMember[] {
  const members = json.startsWith('{') && depth < DEEPEST ? splitObject(json) : [];
  if (members.length === 0) return [{ path, value: json }];
  return members.flatMap(([name, value]) => flatten(value, path === '' ? name : `${path}.${name}`, depth + 1));
}

/** The members of an object's text, which is JSON. */
function splitObject(json: string): (readonly [name: string, value: string])[] {
  const members: (readonly [string, string])[] = [];
  for (let at = skipBlanks(json, 1); json[at] === '"'; ) {
    const nameEnd = endOfString(json, at);
    const start = skipBlanks(json, skipBlanks(json, nameEnd) + 1);
    const end = endOfValue(json, start);
    members.push([JSON.parse(json.slice(at, nameEnd)) as string, json.slice(start, end)]);
    const comma = skipBlanks(json, end);
    at = json[comma] === ',' ? skipBlanks(json, comma + 1) : json.length;
  }
  return members;
}

function skipBlanks(json: string, from: number): number {
  let at = from;
  while (' \n\r\t'.includes(json[at] ?? 'x')) at += 1;
  return at;
}

/** The place after the string that begins at `from`. */
function endOfString(json: string, from: number): number {
  let at = from + 1;
  while (at < json.length && json[at] !== '"') at += json[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** The place after the value that begins at `from`. */
function endOfValue(json: string, from: number): number {
  let at = from;
  for (let depth = 0; at < json.length; ) {
    const letter = json[at]!;
    if (letter === '"') at = endOfString(json, at);
    else if (depth === 0 && ',}] \n\r\t'.includes(letter)) return at;
    else {
      if (letter === '{' || letter === '[') depth += 1;
      if (letter === '}' || letter === ']') depth -= 1;
      at += 1;
    }
    if (depth === 0 && '"}]'.includes(letter)) return at;
  }
  return at;
}

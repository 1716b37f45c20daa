/** A link of a Link header (RFC 8288). */
export interface Link {
  /** The text as written; it may be relative to the address that was asked. */
  readonly target: string;
  /** Relation types in lower case. */
  readonly rel: readonly string[];
  /** The context of the link, where that is not the response itself. */
  readonly anchor?: string;
}

/**
 * Reads a Link header (RFC 8288, 3 and appendix B.2): several links, quoted texts with commas and semicolons in them, parameters without a
 * value. Undefined where any part of it cannot be read: a link that was not understood may be the one that counts.
 */
export function parseLinkHeader(header: string): readonly Link[] | undefined {
  const links: Link[] = [];
  for (let at = skip(header, 0, SEPARATORS); at < header.length; at = skip(header, at, SEPARATORS)) {
    const close = header.indexOf('>', at);
    if (header[at] !== '<' || close === -1) return undefined;
    const parameters = new Map<string, string>();
    const end = readParameters(header, close + 1, parameters);
    if (end === undefined) return undefined;
    const rel = (parameters.get('rel') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const anchor = parameters.get('anchor');
    links.push({ target: header.slice(at + 1, close).trim(), rel, ...(anchor !== undefined && { anchor }) });
    at = end;
  }
  return links;
}

const SPACE = /[ \t]/;
const SEPARATORS = /[ \t,]/;
const PARAMETER = /[ \t]*([!#$%&'*+\-.^_`|~\w]*)[ \t]*(=?)[ \t]*/y;
const QUOTED = /"((?:[^"\\]|\\.)*)"/y;
const UNQUOTED = /[^;,"<>]*/y;

/** Reads all `;name=value` that follow. Returns where they end; undefined where something else precedes the next comma. */
function readParameters(header: string, from: number, parameters: Map<string, string>): number | undefined {
  let at = skip(header, from, SPACE);
  while (header[at] === ';') {
    const [, name = '', equals] = match(PARAMETER, header, at + 1)!;
    at = PARAMETER.lastIndex;
    let value = '';
    if (equals) {
      const quoted = match(QUOTED, header, at);
      value = quoted ? quoted[1]!.replace(/\\(.)/g, '$1') : match(UNQUOTED, header, at)![0].trim();
      at = (quoted ? QUOTED : UNQUOTED).lastIndex;
    }
    // The first parameter of a name counts (RFC 8288, 3.3).
    const key = name.toLowerCase();
    if (!parameters.has(key)) parameters.set(key, value);
    at = skip(header, at, SPACE);
  }
  return at === header.length || header[at] === ',' ? at : undefined;
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function skip(text: string, from: number, characters: RegExp): number {
  let at = from;
  while (at < text.length && characters.test(text[at]!)) at += 1;
  return at;
}

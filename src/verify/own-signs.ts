/** Names that lead to another page, and flags that say that there is one, wherever they stand beside the records. */
const LEADS_ON = /(^|[^a-z])next$|next[-_]?(page|cursor|token|link|url|uri|href|batch|set)|continuation|skiptoken/i;
const SAYS_MORE = /^(has|is)?[-_]?(next|more|truncated|incomplete)/i;
const NOTHING = /^(|null|none|false|no|0|-?1|\d{4}-\d\d-\d\d.*)$/i;

/**
 * A member or header that says that more records follow, by rules of the second reader's own: were walks and it to know the same names alone, neither would find
 * what the other overlooks. It knows fewer places, and any name that is like one of these. `ignored`: what the entry says to mean nothing.
 */
export function ownSignOfMore(
  { rest, headers }: { readonly rest: unknown; readonly headers: Readonly<Record<string, string>> },
  ignored: readonly string[],
): string | undefined {
  const top = members(rest);
  const all = [
    ...Object.entries(headers).map(([name, value]): [string, unknown] => [`header ${name}`, value]),
    ...top,
    ...top.flatMap(([name, value]) => members(value).map(([inner, each]): [string, unknown] => [`${name}.${inner}`, each])),
  ];
  const found = all.find(([place, value]) => {
    const name = place.replace(/^header |^.*\./, '');
    return !ignored.some((each) => place === each || place.startsWith(`${each}.`)) && saysMore(name, value);
  });
  return found?.[0];
}

function saysMore(name: string, value: unknown): boolean {
  if (value === true || /^(true|yes)$/i.test(String(value).trim())) return SAYS_MORE.test(name);
  // A number may count something else where the name does not ask a question.
  if (String(value).trim() === '1') return /^(has|is)/i.test(name) && SAYS_MORE.test(name);
  if (name === 'link') return /rel\s*=\s*"?[^",;]*\bnext\b/i.test(String(value));
  const link = typeof value === 'object' && value !== null && 'href' in value ? value.href : value;
  return typeof link === 'string' && !NOTHING.test(link.trim()) && LEADS_ON.test(name);
}

function members(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}

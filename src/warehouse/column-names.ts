import { createHash } from 'node:crypto';
import anyAscii from 'any-ascii';

/** Bytes that PostgreSQL keeps of a name, minus the bytes of `__text`. Names are ASCII, so bytes are characters. */
const LONGEST = 63 - '__text'.length;
const HASH = 8;

/** The columns of every view. Views of the history add others, all of which begin with an underscore; names made here never do. */
const FIXED = ['environment', 'company_id', 'id'];

/** Latin letters without a decomposition into ASCII, as names have always written them. */
const LETTERS: Readonly<Record<string, string>> = {
  æ: 'ae',
  ø: 'o',
  đ: 'd',
  ð: 'd',
  þ: 'th',
  ł: 'l',
  ß: 'ss',
  œ: 'oe',
  ı: 'i',
  ħ: 'h',
};

/** The column for values of another type. */
export function textColumn(name: string): string {
  return `${name}__text`;
}

/**
 * A name for the column of a key, or of a key inside an object, that differs from all of `taken` and their text columns. The result depends on
 * earlier names: it is stored and never computed again.
 */
export function nameColumn(path: readonly string[], taken: Iterable<string>): string {
  const used = new Set([...FIXED, ...taken].flatMap((name) => [name, textColumn(name)]));
  const isFree = (name: string) => !used.has(name) && !used.has(textColumn(name));
  const base = shorten(path.map(snakeCase).join('__'), path);
  for (let n = 1; ; n += 1) {
    const suffix = n === 1 ? '' : `_${n}`;
    const name = `${base.slice(0, LONGEST - suffix.length)}${suffix}`;
    if (isFree(name)) return name;
  }
}

/** Bytes that PostgreSQL keeps of a name. */
const LONGEST_NAME = 63;

/** A name for the view of the elements of an array, which is at a path in the records, or elements, of another view. It is stored like that of a column. */
export function nameArrayView(around: string, path: readonly string[], taken: ReadonlySet<string>): string {
  const base = shorten([around, ...path.map(snakeCase)].join('__'), [around, ...path], LONGEST_NAME);
  for (let n = 1; ; n += 1) {
    const suffix = n === 1 ? '' : `_${n}`;
    const name = `${base.slice(0, LONGEST_NAME - suffix.length)}${suffix}`;
    if (!taken.has(name)) return name;
  }
}

/** A name for a further column of another type that differs from all of `taken` and their text columns. */
export function nameTwin(name: string, type: string, taken: Iterable<string>): string {
  const used = new Set([...FIXED, ...taken].flatMap((each) => [each, textColumn(each)]));
  for (let n = 1; ; n += 1) {
    const suffix = n === 1 ? `__${type}` : `__${type}_${n}`;
    const twin = `${shorten(name, [name], 63 - suffix.length)}${suffix}`;
    if (!used.has(twin)) return twin;
  }
}

/** Lower-case words of ASCII letters and digits with one underscore between two of them, a letter first. */
function snakeCase(key: string): string {
  const words = key
    .normalize('NFKC')
    .replace(OTHER_SCRIPTS, transliterate)
    .normalize('NFKD')
    .replace(/\p{Mn}+/gu, '')
    .replace(/[^\0-\x7f]/gu, (letter) => withCaseOf(letter, LETTERS[letter.toLowerCase()] ?? (lettersOf(letter) || '_')))
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '');
  return /^[a-z]/.test(words) ? words : words === '' ? 'key' : `key_${words}`;
}

/** Runs of letters, digits and vowel signs of scripts other than Latin, whose accents are removed instead. */
const OTHER_SCRIPTS = /(?:(?=[\p{L}\p{N}\p{M}])[^\p{Script=Latin}\p{Script=Inherited}\0-\x7f])+/gu;
/** Capital letters within a run of them, up to the one that begins the next word. */
const ALL_CAPITALS = /\p{Lu}{2,}(?!\p{Ll})|\p{Lu}+(?=\p{Lu}\p{Ll})/gu;

/** A capital letter that becomes several, as in `Zh`, must not look like the beginning of a word among other capitals. */
function transliterate(run: string): string {
  return lettersOf(run.replace(ALL_CAPITALS, (capitals) => lettersOf(capitals).toUpperCase()));
}

/** A library's spelling may change with its version. Names do not: they are stored, and only new keys get their names here. */
function lettersOf(text: string): string {
  return /[\p{L}\p{N}\p{M}]/u.test(text) ? anyAscii(text).replace(/[^A-Za-z0-9]+/g, '') : '';
}

function withCaseOf(letter: string, plain: string): string {
  return letter === letter.toLowerCase() ? plain : `${plain[0]!.toUpperCase()}${plain.slice(1)}`;
}

/** A name that is too long keeps its beginning, and a hash tells it from others that begin alike. */
function shorten(name: string, path: readonly string[], longest = LONGEST): string {
  if (name.length <= longest) return name;
  const hash = createHash('sha256').update(JSON.stringify(path)).digest('hex').slice(0, HASH);
  return `${name.slice(0, longest - HASH - 1).replace(/_+$/, '')}_${hash}`;
}

import { Prisma } from '../../generated/prisma/client.js';

// Folded texts are compared in searches of names: letter case and diacritics make no difference. TypeScript folds what a person types and PostgreSQL
// folds what is stored, both by these tables. PostgreSQL's own lower() is not used for other than ASCII letters: its result depends on the locale of the database.

/** Letters that Unicode does not decompose, and small letters of alphabets other than Latin. Both texts have the same length. */
const LETTERS = {
  from: 'ØøŁłĐđÐðĦħŦŧıÆŒẞÞŊς’ʼ‐–—ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩАБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯЂЄЅІЈЉЊЋЏ',
  to: "oollddddhhttiæœßþŋσ''---αβγδεζηθικλμνξοπρστυφχψωабвгдежзиклмнопрстуфхцчшщъыьэюяђєѕіјљњћџ",
} as const;

/** Letters that two letters replace, as people type them on other keyboards. */
const PAIRS = [
  ['æ', 'ae'],
  ['œ', 'oe'],
  ['ß', 'ss'],
  ['þ', 'th'],
] as const;

const MARKS = /[\u0300-\u036f]/g;

const SINGLE = new Map([...LETTERS.from].map((letter, at) => [letter, LETTERS.to[at]!] as const));

/** The text without letter case and diacritics: `Ørsted Straße` becomes `orsted strasse`. */
export function foldText(text: string): string {
  const plain = text
    .normalize('NFKD')
    .replace(MARKS, '')
    .replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const single = [...plain].map((letter) => SINGLE.get(letter) ?? letter).join('');
  return PAIRS.reduce((result, [letter, pair]) => result.replaceAll(letter, pair), single);
}

/** SQL: the same of a column or value of type text. A text of ASCII letters alone, as most are, takes the short way. */
export function folded(text: Prisma.Sql): Prisma.Sql {
  const plain = Prisma.sql`lower(regexp_replace(normalize(${text}, NFKD), '[\\u0300-\\u036f]', '', 'g') COLLATE "C")`;
  const single = Prisma.sql`translate(${plain}, ${LETTERS.from}::text, ${LETTERS.to}::text)`;
  const whole = PAIRS.reduce((sql, [letter, pair]) => Prisma.sql`replace(${sql}, ${letter}::text, ${pair}::text)`, single);
  return Prisma.sql`CASE WHEN octet_length(${text}) = char_length(${text}) THEN lower(${text} COLLATE "C") ELSE ${whole} END`;
}

/** Folded text -> every single letter or sign that is folded to it, or to a text that begins or ends with it: Latin, Greek and Cyrillic. */
const SPELLINGS = spellings();

/**
 * A regular expression of PostgreSQL that every JSON text matches in which a value contains the word. It may match other texts, too, such as names of
 * members. Letters of other alphabets than those above must have their case. Nothing is left to the locale of the database.
 */
export function patternOf(word: string): string {
  const letters = [...foldText(word)];
  let pattern = '';
  for (let at = 0; at < letters.length; at += 1) {
    const pair = `${letters[at]}${letters[at + 1] ?? ''}`;
    const ligatures = SPELLINGS.get(pair);
    if (letters[at + 1] !== undefined && ligatures) {
      pattern += `(?:${oneOf(letters[at]!)}${oneOf(letters[at + 1]!)}|${ligatures.join('|')})`;
      at += 1;
    } else pattern += oneOf(letters[at]!);
  }
  return pattern;
}

function oneOf(letter: string): string {
  const all = SPELLINGS.get(letter);
  return `${all ? `[${all.join('')}]` : literal(letter)}[\u0300-\u036f]*`;
}

/** The letter as it is in the text of a JSON value. */
function literal(letter: string): string {
  return JSON.stringify(letter)
    .slice(1, -1)
    .replaceAll(/[^\p{L}\p{N}\s]/gu, String.raw`\$&`);
}

function spellings(): ReadonlyMap<string, string[]> {
  const found = new Map<string, string[]>();
  const alphabets = [
    [0x41, 0x24f],
    [0x370, 0x52f],
    [0x1e00, 0x1fff],
  ] as const;
  // A hyphen is the first of its brackets, where it means itself.
  for (const signs of ["'’ʼ", '-‐–—']) found.set(signs[0]!, [...signs]);
  for (const [from, to] of alphabets)
    for (let code = from; code <= to; code += 1) {
      const letter = String.fromCodePoint(code);
      if (!/^\p{L}$/u.test(letter)) continue;
      const plain = foldText(letter);
      // A word may begin or end within a ligature.
      for (const each of new Set([plain, plain[0]!, plain.at(-1)!])) found.set(each, [...(found.get(each) ?? []), letter]);
    }
  return found;
}

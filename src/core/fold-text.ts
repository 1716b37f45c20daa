// Texts without case and diacritics, for searches by people: "oystein" finds "Øystein". PostgreSQL has no such comparison without an extension, and its
// `lower` depends on the locale of the database.

/** Letters that are no letter with a mark. */
const LETTERS: Readonly<Record<string, string>> = {
  ø: 'o',
  đ: 'd',
  ð: 'd',
  ł: 'l',
  ħ: 'h',
  ı: 'i',
  æ: 'ae',
  œ: 'oe',
  ß: 'ss',
  þ: 'th',
  ς: 'σ',
};

/** The text in lower case, without diacritics. */
export function foldText(text: string): string {
  const bare = text.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  // `toLowerCase` may add a mark: İ becomes an i with a dot.
  return bare.replaceAll(/[øđðłħıæœßþς\p{M}]/gu, (letter) => LETTERS[letter] ?? '');
}

const MARKS = '[\u0300-\u036f]*';

/** Folded text -> every single letter that is folded to it, or to a text that begins or ends with it: Latin, Greek and Cyrillic. */
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
  return (all ? `[${all.join('')}]` : literal(letter)) + MARKS;
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
  for (const [from, to] of alphabets)
    for (let code = from; code <= to; code += 1) {
      const letter = String.fromCodePoint(code);
      if (!/^\p{L}$/u.test(letter)) continue;
      const folded = foldText(letter);
      // A word may begin or end within a ligature.
      for (const each of new Set([folded, folded[0]!, folded.at(-1)!])) found.set(each, [...(found.get(each) ?? []), letter]);
    }
  return found;
}

import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The texts of one language by their keys. Names of lists are under `lists.NAME`, names of members under `members.NAME`. */
export type LanguageTexts = Readonly<Record<string, string>>;

/** The texts of the authorization flow by language tag in lower case: `en`, `nb`, `pt-br`. English is complete. */
export type ConnectTexts = ReadonlyMap<string, LanguageTexts>;

const BUILT_IN_FOLDER = fileURLToPath(new URL('./connect-texts', import.meta.url));

const FILE_NAME = /^[a-z]{2,3}(-[a-z0-9]{2,8})*\.json$/i;
const NAMES = /^(lists|members)\../;
const PLACEHOLDER = /\{(\w+)\}/g;

/** A language of its own file, or of another one that its readers understand. */
const RELATED: Readonly<Record<string, string>> = { no: 'nb', nn: 'nb' };
const FALLBACK = 'en';

const FROM_RIGHT_TO_LEFT = new Set(['ar', 'dv', 'fa', 'he', 'ps', 'ur', 'yi']);

/** The longest text of a file, so that a wrong file makes no endless page. */
const LONGEST = 1_000;

export const BUILT_IN_TEXTS: ConnectTexts = readFolder(BUILT_IN_FOLDER, (problem) => {
  throw new Error(problem);
});

/**
 * The built-in texts, and over them those of the folder. Reports what is wrong with a file: an unknown key, a text that lacks a placeholder of the
 * English one or has another, a file that is no JSON or whose name is no language.
 */
export function readConnectTexts(folder: string, report: (problem: string) => void): ConnectTexts {
  const all = new Map(BUILT_IN_TEXTS);
  for (const [language, texts] of readFolder(folder, report)) {
    checkKeys(`${language}.json`, texts, report);
    all.set(language, { ...all.get(language), ...texts });
  }
  return all;
}

function readFolder(folder: string, report: (problem: string) => void): Map<string, LanguageTexts> {
  const found = new Map<string, LanguageTexts>();
  let files: string[];
  try {
    files = readdirSync(folder).filter((file) => /\.json$/i.test(file));
  } catch (error) {
    report(`must name a folder that can be read (${(error as NodeJS.ErrnoException).code})`);
    return found;
  }
  if (files.length === 0) report('must name a folder with a file for each language, such as de.json');
  for (const file of files.toSorted()) {
    if (!FILE_NAME.test(file)) report(`${file} must be named after a language: de.json or pt-BR.json`);
    else {
      const language = basename(file.toLowerCase(), '.json');
      const texts = readFile(join(folder, file), (problem) => report(`${file} ${problem}`));
      found.set(language, texts);
    }
  }
  return found;
}

function readFile(path: string, report: (problem: string) => void): LanguageTexts {
  let texts: unknown;
  try {
    texts = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    report(error instanceof SyntaxError ? 'is no JSON' : `cannot be read (${(error as NodeJS.ErrnoException).code})`);
    return {};
  }
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts)) {
    report('must be an object of texts by their keys');
    return {};
  }
  const right = Object.entries(texts).filter(([key, text]) => {
    const isRight = typeof text === 'string' && text.trim() !== '' && text.length <= LONGEST;
    if (!isRight) report(`has for ${key} no text of 1 to ${LONGEST} characters`);
    return isRight;
  });
  return Object.fromEntries(right) as LanguageTexts;
}

function checkKeys(file: string, texts: LanguageTexts, report: (problem: string) => void): void {
  const english = BUILT_IN_TEXTS.get(FALLBACK)!;
  for (const [key, text] of Object.entries(texts)) {
    const original = english[key];
    if (NAMES.test(key)) continue;
    if (original === undefined) report(`${file} has the unknown key ${key}`);
    else {
      const [wanted, given] = [placeholdersOf(original), placeholdersOf(text)];
      for (const name of wanted) if (!given.has(name)) report(`${file} lacks {${name}} in ${key}`);
      for (const name of given) if (!wanted.has(name)) report(`${file} has the unknown {${name}} in ${key}`);
    }
  }
}

function placeholdersOf(text: string): Set<string> {
  return new Set([...text.matchAll(PLACEHOLDER)].map(([, name]) => name!));
}

/** The texts that a page is written with. */
export interface Language {
  /** The page's `lang`. */
  readonly tag: string;
  readonly direction: 'ltr' | 'rtl';
  /** The text of a key, with the values in place of its placeholders. */
  text(key: string, values?: Readonly<Record<string, string>>): string;
  /** The name of a list, or of a member of its records, in words. */
  nameOf(kind: 'lists' | 'members', name: string): string;
}

/** The language that the browser likes best among those that there are; English otherwise. A text that it lacks is English. */
export function languageFor(all: ConnectTexts, acceptLanguage: string | undefined): Language {
  const tag = preferred(acceptLanguage ?? '').flatMap((range) => lookUp(all, range))[0] ?? FALLBACK;
  const chain = [all.get(tag), all.get(FALLBACK)];
  const find = (key: string) => chain.find((texts) => texts?.[key] !== undefined)?.[key];
  return {
    tag,
    direction: FROM_RIGHT_TO_LEFT.has(tag.split('-')[0]!) ? 'rtl' : 'ltr',
    text(key, values = {}) {
      const text = find(key);
      if (text === undefined) throw new Error(`There is no text for ${key}.`);
      return text.replaceAll(PLACEHOLDER, (whole, name: string) => values[name] ?? whole);
    },
    nameOf: (kind, name) => find(`${kind}.${name}`) ?? inWords(name),
  };
}

/** The ranges of `Accept-Language` (RFC 9110, 12.5.4), the most wanted first. */
function preferred(header: string): string[] {
  return header
    .slice(0, LONGEST)
    .split(',')
    .map((entry) => /^\s*([a-z0-9-]+|\*)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?\s*$/i.exec(entry))
    .flatMap((found) => (found ? [{ range: found[1]!.toLowerCase(), weight: Number(found[2] ?? 1) }] : []))
    .filter(({ weight }) => weight > 0)
    .toSorted((a, b) => b.weight - a.weight)
    .map(({ range }) => range);
}

/** The language of the range, or of its beginning: `nb` for `nb-NO`, also for `no` and `nn`. */
function lookUp(all: ConnectTexts, range: string): string[] {
  const parts = range.split('-');
  for (let length = parts.length; length > 0; length -= 1) {
    const tag = parts.slice(0, length).join('-');
    if (all.has(tag)) return [tag];
  }
  const related = RELATED[parts[0]!];
  if (related !== undefined && all.has(related)) return [related];
  return range === '*' ? [FALLBACK] : [];
}

/** `bank_accounts` and `bankAccounts` as "bank accounts"; for a path, its last part. */
function inWords(name: string): string {
  const last = name.split('.').at(-1)!;
  return last
    .replaceAll(/([a-z\d])([A-Z])/g, '$1 $2')
    .replaceAll(/[_-]+/g, ' ')
    .trim()
    .toLowerCase();
}

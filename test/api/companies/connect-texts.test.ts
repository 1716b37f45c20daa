import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { logoOf } from '../../../src/api/companies/connect-operator.js';
import { brokenPage, connectedPage } from '../../../src/api/companies/connect-outcomes.js';
import { connectPage } from '../../../src/api/companies/connect-page.js';
import { BUILT_IN_TEXTS, languageFor, readConnectTexts } from '../../../src/api/companies/connect-texts.js';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function folderOf(files: Readonly<Record<string, unknown>>): string {
  const folder = mkdtempSync(join(tmpdir(), 'muster-texts-'));
  folders.push(folder);
  for (const [name, texts] of Object.entries(files))
    writeFileSync(join(folder, name), typeof texts === 'string' ? texts : JSON.stringify(texts));
  return folder;
}

function problemsOf(files: Readonly<Record<string, unknown>>): string[] {
  const problems: string[] = [];
  readConnectTexts(folderOf(files), (problem) => problems.push(problem));
  return problems;
}

test('Norwegian has every text of English, with the same placeholders', () => {
  const [english, norwegian] = ['en', 'nb'].map((language) => BUILT_IN_TEXTS.get(language)!);
  for (const key of Object.keys(english!)) expect(norwegian, key).toHaveProperty([key]);
  expect(problemsOf({ 'nb.json': norwegian })).toEqual([]);
});

test('no text speaks of the inside', () => {
  for (const texts of BUILT_IN_TEXTS.values())
    for (const [key, text] of Object.entries(texts)) expect(text, key).not.toMatch(/token|oauth|refresh|sandbox|muster|\btest/i);
});

test('a language is added by a file, a text that it lacks is English, and a built-in one is replaced', () => {
  const texts = readConnectTexts(
    folderOf({
      'de.json': { 'ask.continue': 'Weiter', 'lists.employees': 'Mitarbeitende' },
      'pt-BR.json': { 'ask.continue': 'Continuar' },
      'ar.json': { 'ask.continue': 'متابعة' },
      'en.json': { 'ask.continue': 'Go on' },
      'README.md': 'no texts',
    }),
    expect.unreachable,
  );
  const german = languageFor(texts, 'de-CH, en;q=0.5');
  expect([german.tag, german.direction, german.text('ask.continue'), german.nameOf('lists', 'employees')]).toEqual([
    'de',
    'ltr',
    'Weiter',
    'Mitarbeitende',
  ]);
  expect([german.text('again'), german.nameOf('lists', 'time_entries')]).toEqual(['Start again', 'time entries']);
  expect(languageFor(texts, 'pt-br').text('ask.continue')).toBe('Continuar');
  expect(languageFor(texts, 'pt').text('ask.continue')).toBe('Go on');
  const arabic = languageFor(texts, 'ar-EG');
  expect(connectPage(brokenPage('failed', arabic), { texts }, arabic)).toContain('<html lang="ar" dir="rtl">');
  expect(languageFor(texts, 'nb').text('ask.continue')).toBe('Fortsett');
});

test('every fault of the files is named', () => {
  expect(
    problemsOf({
      'de.json': {
        'ask.who': 'Jemand fragt.',
        'ask.wo': 'x',
        again: 'Noch einmal, {company}',
        return: ' ',
        'lists.employees': 'x',
      },
      'fr.json': '{',
      'it.json': [],
      'german_texts.json': {},
    }),
  ).toEqual([
    'de.json has for return no text of 1 to 1000 characters',
    'fr.json is no JSON',
    'german_texts.json must be named after a language: de.json or pt-BR.json',
    'it.json must be an object of texts by their keys',
    'de.json lacks {company} in ask.who',
    'de.json has the unknown key ask.wo',
    'de.json has the unknown {company} in again',
  ]);
  expect(problemsOf({})).toEqual(['must name a folder with a file for each language, such as de.json']);
  const missing: string[] = [];
  readConnectTexts('/nowhere/texts', (problem) => missing.push(problem));
  expect(missing).toEqual(['must name a folder that can be read (ENOENT)']);
});

test('values are put into a text once, so that no name is read as a placeholder', () => {
  const { text } = languageFor(BUILT_IN_TEXTS, 'en');
  expect(text('ask.who_operator', { operator: '{company} $& Co', company: '{operator}' })).toMatch(
    /^\{company\} \$& Co asks .* \{operator\}\./,
  );
});

test('the page that follows leads on to the operator, with logo, and says whom to ask', () => {
  const english = languageFor(BUILT_IN_TEXTS, undefined);
  const logo = logoOf(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'));
  if (typeof logo === 'string') throw new Error(logo);
  const operator = { name: 'Nordlys', logo, contact: 'https://nordlys.example/help?a=1&b=2', texts: BUILT_IN_TEXTS };
  const onward = { label: 'Back to Nordlys', href: 'https://nordlys.example/?a=1&b=2' };
  const page = connectPage(
    connectedPage({ created: true, syncing: false, company: 'Fjord AS', onward }, english),
    operator,
    english,
  );
  expect(page).toContain('<a class="action" href="https://nordlys.example/?a=1&#38;b=2">Back to Nordlys</a>');
  expect(page).toContain(`<img src="data:image/svg+xml;base64,${logo.base64}" alt="">`);
  expect(page).toContain('<a href="https://nordlys.example/help?a=1&#38;b=2">https://nordlys.example/help?a=1&#38;b=2</a>');
  expect(page).toContain('<title>The company is connected · Nordlys</title>');
});

test('a logo is a PNG or an SVG of at most 100 kB', () => {
  const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
  expect(logoOf(png)).toMatchObject({ type: 'image/png' });
  for (const wrong of ['', 'GIF89a', '<html><svg></svg></html>', '<svg></svg>'])
    expect(logoOf(Buffer.from(wrong))).toBe('must be an image in PNG or SVG');
  expect(logoOf(Buffer.concat([png, Buffer.alloc(100_000)]))).toBe('must be at most 100 kB');
});

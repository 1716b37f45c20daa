import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { linkLibraries } from '../../src/embedded/library-links.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'muster-links-'));
  mkdirSync(join(folder, 'native/lib'), { recursive: true });
  writeFileSync(join(folder, 'native/lib/libpq.so.5.18'), 'library');
  list([
    { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' },
    { source: 'native/lib/libpq.so.5.18', target: 'native/lib/private/libpq.so' },
  ]);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function list(links: readonly object[]): void {
  writeFileSync(join(folder, 'native/pg-symlinks.json'), JSON.stringify(links));
}

test('makes the links that an install without scripts leaves out, also in folders that are not there', () => {
  linkLibraries(folder);
  for (const link of ['native/lib/libpq.so.5', 'native/lib/private/libpq.so'])
    expect(readFileSync(join(folder, link), 'utf8')).toBe('library');
});

test('leaves links and files alone that are there', () => {
  symlinkSync('libpq.so.5.18', join(folder, 'native/lib/libpq.so.5'));
  mkdirSync(join(folder, 'native/lib/private'));
  writeFileSync(join(folder, 'native/lib/private/libpq.so'), 'own');
  const before = lstatSync(join(folder, 'native/lib/libpq.so.5')).ino;
  linkLibraries(folder);
  expect(lstatSync(join(folder, 'native/lib/libpq.so.5')).ino).toBe(before);
  expect(readFileSync(join(folder, 'native/lib/private/libpq.so'), 'utf8')).toBe('own');
});

test('says what to do where the link cannot be made', () => {
  writeFileSync(join(folder, 'file'), '');
  list([{ source: 'native/lib/libpq.so.5.18', target: 'file/libpq.so' }]);
  expect(() => linkLibraries(folder)).toThrow(/installed without its install script.*npm rebuild/);
});

test('does nothing for a package that lists no links', () => {
  rmSync(join(folder, 'native/pg-symlinks.json'));
  expect(() => linkLibraries(folder)).not.toThrow();
});

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ERRORS_DOCUMENT, errorsDocument } from '../../../scripts/errors-document.js';

const document = readFileSync(ERRORS_DOCUMENT, 'utf8');

test('docs/errors.md is what `npm run generate:docs` makes of it', () => {
  expect(errorsDocument(document)).toBe(document);
});

test('a code without a row, and a row without a code, are refused', () => {
  expect(() => errorsDocument(document.replace(/^\| `fenced` .*$/m, ''))).toThrow('no row for fenced');
  expect(() => errorsDocument(document.replace('| `fenced` |', '| `fences` |'))).toThrow('a row for fences');
});

test('docs/errors.md says of each code what it means', () => {
  for (const [, code, means] of document.matchAll(/^\| `(\w+)` \| \d+ \| (?:yes|no) \| (.+?) \| /gm))
    expect(means!.length, code).toBeGreaterThan(7);
});

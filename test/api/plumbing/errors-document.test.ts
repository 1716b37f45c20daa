import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { ERROR_CODES } from '../../../src/core/errors.js';

const document = readFileSync(new URL('../../../docs/errors.md', import.meta.url), 'utf8');
const rows = [...document.matchAll(/^\| `(\w+)` \| (\d+) \| (yes|no) \| (.+?) \| (.+?) \|$/gm)];

describe('docs/errors.md', () => {
  test('lists every code once, with the status and the retry that it has', () => {
    const listed = rows.map(([, code, status, retry]) => [code, { status: Number(status), retryable: retry === 'yes' }]);
    expect(listed.length).toBe(new Set(rows.map(([, code]) => code)).size);
    expect(Object.fromEntries(listed)).toEqual(ERROR_CODES);
  });

  test('says of each what it means and what to do', () => {
    for (const [, code, , , means, todo] of rows) expect(Math.min(means!.length, todo!.length), code).toBeGreaterThan(7);
  });
});

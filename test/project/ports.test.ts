import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PORT_RANGES } from '../support/port.js';

const ROOT = new URL('../../', import.meta.url);

test('each worker of vitest has ports of its own', () => {
  const configurations = readdirSync(ROOT).filter((file) => /^vitest.*\.config\.ts$/.test(file));
  const counts = configurations.flatMap((file) => {
    const [, count] = /maxWorkers: (\d+)/.exec(readFileSync(new URL(file, ROOT), 'utf8')) ?? [];
    return count === undefined ? [] : [Number(count)];
  });
  expect(counts.length).toBeGreaterThan(5);
  expect(Math.max(...counts)).toBeLessThanOrEqual(PORT_RANGES);
});

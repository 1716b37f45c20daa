import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { OWN_COMMAND, ownCommand } from '../../src/cli/own-command.js';

test('a checkout has its command in bin, and an installed package is called by npx or by its name', () => {
  expect(OWN_COMMAND).toBe('./bin/muster');
  const folder = mkdtempSync(path.join(tmpdir(), 'muster-own-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const home = path.join(folder, 'node_modules/muster/');
  expect(ownCommand(home, folder)).toBe('muster');
  mkdirSync(path.join(folder, 'node_modules/.bin'), { recursive: true });
  writeFileSync(path.join(folder, 'node_modules/.bin/muster'), '');
  expect(ownCommand(home, folder)).toBe('npx muster');
  expect(ownCommand(home, path.join(folder, 'node_modules'))).toBe('muster');
});

import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { keptSecret } from '../../src/core/home.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'kept-secret-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const keep = (...path: string[]) => keptSecret(join(...path), { generate: () => 'a-secret-of-tests' });
const unusable = (message: RegExp) =>
  expect.objectContaining({ code: 'invalid_configuration', message: expect.stringMatching(message) });

describe('where nothing can be kept', () => {
  // Only there is a /proc.
  test.runIf(process.platform === 'linux')('a folder that cannot be made is named', async () => {
    await expect(keep('/proc/nope', 'secret')).rejects.toEqual(
      unusable(/^MUSTER_HOME: the folder \/proc\/nope cannot be made or written \(ENOENT\)/),
    );
  });

  test('a file in the place of a folder is named', async () => {
    const file = join(folder, 'file');
    writeFileSync(file, '');
    await expect(keep(file, 'below', 'secret')).rejects.toEqual(unusable(/^MUSTER_HOME: .*file.* \((ENOTDIR|EEXIST)\)/));
  });

  // Root may write anywhere.
  test.skipIf(process.getuid?.() === 0)('a folder that is not ours to write is named', async () => {
    chmodSync(folder, 0o500);
    await expect(keep(folder, 'secret')).rejects.toEqual(unusable(/cannot be made or written \(EACCES\)/));
  });

  test('what cannot be read is named', async () => {
    mkdirSync(join(folder, 'secret'));
    await expect(keep(folder, 'secret')).rejects.toEqual(unusable(/secret cannot be read \(EISDIR\)/));
  });
});

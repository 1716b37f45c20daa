import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * The text of `released.sha256` that has every migration of the folder, in their order. Throws where one that was released before is gone or has been edited:
 * its checksum is in databases.
 */
export function frozenMigrations(folder: string): string {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted();
  const lines = names.map((name) => {
    const sql = readFileSync(path.join(folder, name, 'migration.sql'));
    return `${createHash('sha256').update(sql).digest('hex')}  ${name}`;
  });
  const file = path.join(folder, 'released.sha256');
  const before = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n').filter(Boolean) : [];
  const changed = before.filter((line) => !lines.includes(line));
  if (changed.length > 0)
    throw new Error(`released migrations were edited or are gone: ${changed.map((line) => line.slice(66)).join(', ')}`);
  return `${lines.join('\n')}\n`;
}

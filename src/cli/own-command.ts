import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const HOME = fileURLToPath(new URL('../..', import.meta.url));

/** How a person calls this Muster from the present folder: in a checkout, where npm installed the package, or where npm installed it globally. */
export const OWN_COMMAND = ownCommand(HOME, process.cwd());

export function ownCommand(home: string, folder: string): string {
  if (path.basename(path.dirname(path.resolve(home))) !== 'node_modules') return './bin/muster';
  return existsSync(path.join(folder, 'node_modules/.bin/muster')) ? 'npx muster' : 'muster';
}

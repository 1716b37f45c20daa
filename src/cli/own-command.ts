import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The folder with package.json. */
const HOME = fileURLToPath(new URL('../..', import.meta.url));

/** How a person calls this Muster from the present folder, to begin commands with that are shown to be typed. */
export const OWN_COMMAND = ownCommand(HOME, process.cwd());

/**
 * `home` is the folder of Muster, `folder` the one in which the command is typed. A checkout has its program in bin/. npm puts an installed
 * package into a folder `node_modules`, and its command next to it, where npx finds it; of a package that is installed for all folders, the shell finds it.
 */
export function ownCommand(home: string, folder: string): string {
  const isInstalled = path.basename(path.dirname(path.resolve(home))) === 'node_modules';
  if (!isInstalled) return './bin/muster';
  const isInstalledHere = existsSync(path.join(folder, 'node_modules/.bin/muster'));
  return isInstalledHere ? 'npx muster' : 'muster';
}

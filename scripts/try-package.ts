// Packs Muster, installs the package into empty folders, and starts it there as the README says: under each supported Node, and once without
// install scripts. Then the two installs of a checkout that leave something out, and a release of what is committed. Needs npm's registry.
// usage: npm run test:package -- [part]...
import { parseArgs } from 'node:util';
import { nodeBinary } from './node-binaries.js';
import { tryCheckoutWithoutDevelopment, tryCheckoutWithoutScripts } from './package/checkout-trial.js';
import { packInto } from './package/pack.js';
import { tryPackage } from './package/package-trial.js';
import { tryRelease } from './package/release-trial.js';
import { withFolder } from './package/with-folder.js';

const PACKAGE_PARTS: Readonly<Record<string, (file: string) => Promise<void>>> = {
  node20: (file) => tryPackage(file, { node: process.execPath }),
  node22: (file) => tryPackage(file, { node: nodeBinary('22') }),
  node24: (file) => tryPackage(file, { node: nodeBinary('24') }),
  'without-scripts': (file) => tryPackage(file, { node: process.execPath, flags: ['--ignore-scripts'] }),
};
const CHECKOUT_PARTS: Readonly<Record<string, () => void | Promise<void>>> = {
  'checkout-omit-dev': tryCheckoutWithoutDevelopment,
  'checkout-without-scripts': tryCheckoutWithoutScripts,
  release: tryRelease,
};

const { positionals: asked } = parseArgs({ allowPositionals: true });
const known = [...Object.keys(PACKAGE_PARTS), ...Object.keys(CHECKOUT_PARTS)];
const unknown = asked.filter((part) => !known.includes(part));
if (unknown.length > 0) {
  console.error(`Unknown parts: ${unknown.join(', ')}. There are ${known.join(', ')}.`);
  process.exit(2);
}
const isAsked = (part: string) => asked.length === 0 || asked.includes(part);

await withFolder(async (folder) => {
  const parts = Object.entries(PACKAGE_PARTS).filter(([part]) => isAsked(part));
  if (parts.length === 0) return;
  const file = packInto(folder);
  for (const [part, run] of parts) {
    console.log(`\n# ${part}`);
    await run(file);
  }
});
for (const [part, run] of Object.entries(CHECKOUT_PARTS)) {
  if (!isAsked(part)) continue;
  console.log(`\n# ${part}`);
  await run();
}
console.log('\nThe package works.');

// Pins the Dockerfile's base image to the digest that its tag has now. Asks the registry through whichever of docker, skopeo and crane is installed.
// usage: npm run pin:base-image [-- sha256:…]
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { baseImage, pinned } from './release/base-image.js';

const file = fileURLToPath(new URL('../Dockerfile', import.meta.url));
const dockerfile = readFileSync(file, 'utf8');
const { tag, digest: before } = baseImage(dockerfile);

/** Each prints the digest of the index that has the image of every platform. */
const ASKERS: readonly (readonly [program: string, ...args: string[]])[] = [
  ['docker', 'buildx', 'imagetools', 'inspect', tag, '--format', '{{.Manifest.Digest}}'],
  ['crane', 'digest', tag],
  ['skopeo', 'inspect', '--format', '{{.Digest}}', `docker://${tag}`],
];

function ask(): string {
  for (const [program, ...args] of ASKERS) {
    const { status, stdout, error } = spawnSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });
    if (!error && status === 0) return stdout.trim();
  }
  throw new Error(
    `none of ${ASKERS.map(([program]) => program).join(', ')} could say the digest of ${tag}; hand it in: npm run pin:base-image -- sha256:…`,
  );
}

try {
  const digest = process.argv[2] ?? ask();
  writeFileSync(file, pinned(dockerfile, digest));
  console.log(`${tag} is pinned to ${digest}${before === digest ? ', as before' : ''}. Commit the Dockerfile.`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}

import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { npmEnvironment } from './npm-environment.js';

const checkout = fileURLToPath(new URL('../..', import.meta.url));

/** Without these nothing starts. */
const NEEDED = [
  'package.json',
  'README.md',
  'LICENSE',
  'CHANGELOG.md',
  'bin/muster',
  'dist/cli/main.js',
  'dist/generated/prisma/client.js',
  'dist/api/plumbing/examples.json',
  'prisma/migrations/migration_lock.toml',
  'examples/catalogue.yaml',
];

/** What only a checkout has, and what is this machine's alone. */
const FOREIGN =
  /^(?:src|test|scripts|bench\/\w+\.ts|node_modules|\.ci)\b|\.map$|(?:^|\/)\.env$|\.tsbuildinfo$|\.compile-cache|\.muster\b|secrets\//;

/** Packs the checkout, compiled anew, into a folder and returns the file. Throws where the package lacks a file or has one too many. */
export function packInto(folder: string): string {
  // It may have files whose sources are gone, and the compiler's notes say that nothing is to be compiled.
  rmSync(path.join(checkout, 'dist'), { recursive: true, force: true });
  const args = ['pack', '--json', '--loglevel=error', '--pack-destination', folder];
  const printed = execFileSync('npm', args, { cwd: checkout, env: npmEnvironment(), encoding: 'utf8', maxBuffer: 64 << 20 });
  // `prepare` prints before npm does.
  const [packed] = JSON.parse(printed.slice(printed.search(/^\[$/m))) as [
    { readonly filename: string; readonly files: readonly { readonly path: string }[]; readonly size: number },
  ];
  const files = packed.files.map((file) => file.path);
  const missing = NEEDED.filter((file) => !files.includes(file));
  const foreign = files.filter((file) => FOREIGN.test(file));
  if (missing.length > 0 || foreign.length > 0)
    throw new Error(
      `the package lacks ${missing.join(', ') || 'nothing'}, and should not have ${foreign.join(', ') || 'anything else'}`,
    );
  console.log(`# ${packed.filename}: ${files.length} files, ${(packed.size / 1e6).toFixed(1)} MB`);
  return path.join(folder, packed.filename);
}

import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const checkout = fileURLToPath(new URL('..', import.meta.url));

/** Copies what git knows or would add, and the generated sources; packages are linked. Returns the new folder, which the caller removes. */
export function copyCheckout(name: string): string {
  const copy = mkdtempSync(path.join(tmpdir(), `muster-${name}-`));
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: checkout,
    encoding: 'utf8',
  });
  for (const file of [...listed.trim().split('\n'), 'src/generated'])
    cpSync(path.join(checkout, file), path.join(copy, file), { recursive: true, force: true });
  symlinkSync(path.join(checkout, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { npmEnvironment } from './npm-environment.js';
import { withFolder } from './with-folder.js';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
const VERSION = '99.0.0';

/** Makes a release of what is committed, in a clone that is thrown away, and looks at all that it leaves. */
export function tryRelease(): Promise<void> {
  return withFolder((folder) => {
    const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: clone, encoding: 'utf8' }).trim();
    const origin = path.join(folder, 'origin');
    const clone = path.join(folder, 'clone');
    execFileSync('git', ['clone', '--quiet', '--bare', checkout, origin]);
    execFileSync('git', ['clone', '--quiet', origin, clone]);
    git('switch', '--quiet', '--force-create', 'main');
    git('config', 'user.name', 'Trial');
    git('config', 'user.email', 'trial@example.invalid');
    symlinkSync(path.join(checkout, 'node_modules'), path.join(clone, 'node_modules'));
    mkdirSync(path.join(clone, 'dist'));
    writeFileSync(path.join(clone, 'dist/gone.js'), '// Its source was removed.\n');
    // A link is no folder, which is what .gitignore names.
    writeFileSync(path.join(clone, '.git/info/exclude'), 'node_modules\n');
    const release = (...args: readonly string[]) => {
      const line = ['--import', 'tsx', 'scripts/release.ts', VERSION, ...args];
      return spawnSync(process.execPath, line, { cwd: clone, env: npmEnvironment(), encoding: 'utf8' });
    };

    const refused = release();
    if (refused.status !== 2 || !/check:release/.test(refused.stderr))
      throw new Error(`a release that was not checked went on:\n${refused.stderr}`);
    const head = git('rev-parse', 'HEAD');
    const { status, stdout, stderr } = release('--checked', '--without-image', '--day', '2026-11-28');
    if (status !== 0) throw new Error(`npm run release ended with ${status}:\n${stdout}${stderr}`);

    const sees = (isSo: boolean, what: string) => {
      if (!isSo) throw new Error(`after the release, ${what}`);
    };
    sees(git('status', '--porcelain') === '', 'the tree is not clean');
    sees(
      git('rev-parse', 'HEAD~1') === head && git('log', '-1', '--format=%s') === `Release ${VERSION}`,
      'there is no single commit',
    );
    sees(git('rev-parse', `v${VERSION}^{commit}`) === git('rev-parse', 'HEAD'), 'the tag is not on it');
    sees(git('cat-file', '-t', `v${VERSION}`) === 'tag', 'the tag has no notes');
    sees(git('ls-remote', 'origin', `v${VERSION}`) === '', 'the tag was pushed');
    const { version } = JSON.parse(readFileSync(path.join(clone, 'package.json'), 'utf8')) as { readonly version: string };
    sees(version === VERSION, 'package.json has another version');
    sees(
      readFileSync(path.join(clone, 'CHANGELOG.md'), 'utf8').includes(`## [${VERSION}] - 2026-11-28\n`),
      'the changelog has no section',
    );
    const file = path.join(clone, `release/muster-${VERSION}.tgz`);
    const packed = execFileSync('tar', ['xzOf', file, 'package/package.json'], { encoding: 'utf8' });
    sees((JSON.parse(packed) as { readonly version: string }).version === VERSION, 'the package has another version');
    const files = execFileSync('tar', ['tzf', file], { encoding: 'utf8' });
    sees(files.includes('package/dist/cli/main.js') && !files.includes('gone.js'), 'the package was not compiled anew');
    const bill = readFileSync(path.join(clone, `release/muster-${VERSION}.cdx.json`), 'utf8');
    sees(
      bill.includes(`"muster@${VERSION}"`) && !/"prisma@|"typescript@|"vitest@/.test(bill),
      'the bill of materials has other packages',
    );
    sees(existsSync(path.join(clone, `release/notes-${VERSION}.md`)), 'there are no notes');
    sees(/git push --atomic origin main/.test(stdout), 'the next steps are not printed');
    const again = release('--checked', '--without-image');
    sees(again.status === 2 && /does not come after/.test(again.stderr), 'it can be made once more');
    console.log('# works');
  });
}

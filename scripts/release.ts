// Makes a release of the commit that is checked out: versions, changelog, released migrations, one commit and its tag, the package, its bill of
// materials and the notes. It pushes and publishes nothing; at the end it prints the commands that do.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { billOfMaterials } from './package/bill-of-materials.js';
import { packInto } from './package/pack.js';
import { baseImage } from './release/base-image.js';
import { type Cut, cutChangelog } from './release/changelog.js';
import { frozenMigrations } from './release/released-migrations.js';
import { isLater, VERSIONED } from './release/versions.js';

const checkout = fileURLToPath(new URL('..', import.meta.url));
const pathOf = (file: string) => path.join(checkout, file);
const read = (file: string) => readFileSync(pathOf(file), 'utf8');
const git = (...args: readonly string[]) => execFileSync('git', args, { cwd: checkout, encoding: 'utf8' }).trim();

const USAGE =
  'usage: npm run release -- 0.3.0 [--checked] [--without-image] [--day YYYY-MM-DD] [--branch main] [--output release]';
const { values: options, positionals } = readArguments();
const [version = ''] = positionals;
const tag = `v${version}`;

const faults: string[] = [];
const refuseWhere = (isFault: boolean, what: string) => void (isFault && faults.push(what));
/** Remembers the fault that `make` throws, so that one run tells all of them. */
function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    faults.push(error instanceof Error ? error.message : String(error));
    return undefined;
  }
}

const current = (JSON.parse(read('package.json')) as { readonly version: string }).version;
if (!/^\d+\.\d+\.\d+$/.test(version)) faults.push(`"${version}" is no version; for example: npm run release -- 0.3.0`);
else refuseWhere(!isLater(version, current), `${version} does not come after ${current}, the version of package.json`);
refuseWhere(!/^\d{4}-\d{2}-\d{2}$/.test(options.day), `--day: "${options.day}" is no day; for example: 2026-11-28`);
refuseWhere(git('status', '--porcelain') !== '', 'there are changes that are not committed; `git status` lists them');
const branch = git('branch', '--show-current');
refuseWhere(branch !== options.branch, `this is branch ${branch || '(none)'}, and releases are made on ${options.branch}`);
refuseWhere(git('tag', '--list', tag) !== '', `the tag ${tag} is there already`);
refuseWhere(
  !options.checked && checkedCommit() !== git('rev-parse', 'HEAD'),
  '`npm run check:release` has not ended green on this commit here; run it, or say --checked where it has elsewhere',
);
refuseWhere(
  !options['without-image'] && baseImage(read('Dockerfile')).digest === undefined,
  `the Dockerfile's base image has no digest; run \`npm run pin:base-image\` and commit, or say --without-image where none is published`,
);
const cut = attempt(() => cutChangelog(read('CHANGELOG.md'), version, options.day));
const migrations = attempt(() => frozenMigrations(pathOf('prisma/migrations')));
if (faults.length > 0 || !cut || migrations === undefined) {
  console.error(`Nothing was changed:\n${faults.map((fault) => `- ${fault}`).join('\n')}`);
  process.exit(2);
}
release(cut, migrations);

function readArguments() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: {
        help: { type: 'boolean', default: false },
        checked: { type: 'boolean', default: false },
        'without-image': { type: 'boolean', default: false },
        day: { type: 'string', default: new Date().toISOString().slice(0, 10) },
        branch: { type: 'string', default: 'main' },
        output: { type: 'string', default: 'release' },
      },
    });
    if (!parsed.values.help) return parsed;
    console.log(USAGE);
    process.exit(0);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`);
    process.exit(2);
  }
}

/** The commit on which the whole release check last ended green in this clone; .ci/release writes it. */
function checkedCommit(): string | undefined {
  const file = path.resolve(checkout, git('rev-parse', '--git-path', 'checked-for-release'));
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
}

function release({ changelog, notes }: Cut, released: string): void {
  const output = path.resolve(checkout, options.output);
  mkdirSync(output, { recursive: true });
  const notesFile = path.join(output, `notes-${version}.md`);
  const billFile = path.join(output, `muster-${version}.cdx.json`);
  let packed: string;
  try {
    for (const [file, withVersion] of Object.entries(VERSIONED)) {
      if (existsSync(pathOf(file))) writeFileSync(pathOf(file), withVersion(read(file), version));
    }
    writeFileSync(pathOf('CHANGELOG.md'), changelog);
    writeFileSync(pathOf('prisma/migrations/released.sha256'), released);
    packed = packInto(output);
    writeFileSync(billFile, billOfMaterials(checkout));
    writeFileSync(notesFile, notes);
    git('commit', '--quiet', '--all', '--message', `Release ${version}`);
  } catch (error) {
    git('checkout', '--quiet', '--', '.');
    throw error;
  }
  // As it is: git would take the notes' headings for comments.
  git('tag', '--annotate', '--cleanup=whitespace', '--file', notesFile, tag);
  console.log(nextSteps({ packed, billFile, notesFile }));
}

function nextSteps(files: Readonly<Record<'packed' | 'billFile' | 'notesFile', string>>): string {
  const { packed, billFile, notesFile } = Object.fromEntries(
    Object.entries(files).map(([name, file]) => [name, path.relative(checkout, file)]),
  ) as typeof files;
  const image = `docker buildx build --platform linux/amd64,linux/arm64 --sbom=true --provenance=true \\
    --build-arg VERSION=${version} --build-arg REVISION=${git('rev-parse', 'HEAD')} --build-arg SOURCE=<address of the repository> \\
    --tag <registry>/muster:${version} --push .`;
  return `
Release ${version} is committed and tagged as ${tag}, and nothing has left this machine. Look at it with \`git show ${tag}\`. To take it back:
  git tag --delete ${tag} && git reset --hard HEAD~1

To publish it:
  git push --atomic origin ${branch} ${tag}
  gh release create ${tag} --verify-tag --title ${version} --notes-file ${notesFile} ${packed} ${billFile}
${options['without-image'] ? '' : `  ${image}\n`}
package.json is private, so that \`npm publish\` refuses: the name belongs to somebody else in npm's registry. People install the file.`;
}

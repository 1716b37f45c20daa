import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { loadCatalogue } from '../../catalogue/load-catalogue.js';
import { loadConfig } from '../../config/config.js';
import { latenessOf } from '../../runs/lateness.js';
import { UsageFailure } from '../exit-code.js';
import { readingUrl } from './reading-url.js';

const HELP = `
Reads the database of DATABASE_URL, or the embedded one while Muster runs, and writes nothing to it. The package has the typed views as
sources with their freshness and, for each list, a staging model with tests and a model of its history. Run the command again with --force
after lists or columns were added.

  cd DIR && dbt source freshness && dbt build

takes PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE; DBT_SCHEMA is the schema of the models (default: analytics).`;

export function registerDbt(program: Command): void {
  const dbt = program.command('dbt').description('a package for dbt over the typed views');
  dbt
    .command('init <dir>')
    .description('write the package')
    .option('--force', 'overwrite the files of an earlier package')
    .option('--json', 'print one JSON object a line')
    .addHelpText('after', HELP)
    .action(async (dir: string, { force, json }: { force?: boolean; json?: boolean }) => {
      if (!force && existsSync(dir) && readdirSync(dir).length > 0)
        throw new UsageFailure(
          `${dir} is not empty: name another folder, or overwrite the files of an earlier package with --force.`,
        );
      const config = loadConfig(process.env);
      const catalogue = loadCatalogue(config.cataloguePath);
      const [{ readOnly }, { requireMusterDatabase }, { readDbtInput }, { dbtPackage, isWrittenByMuster }] = await Promise.all([
        import('../../db/connection/read-only.js'),
        import('../../db/connection/muster-database.js'),
        import('../../warehouse/dbt-lists.js'),
        import('../../warehouse/dbt-package.js'),
      ]);
      const input = await readOnly(await readingUrl(config), async (db) => {
        await requireMusterDatabase(db);
        return readDbtInput(db, catalogue);
      });
      const files = dbtPackage(input, { staleAfterHours: latenessOf(config, catalogue) });
      // A model of a list that is gone would have no source.
      for (const path of sqlAndYaml(dir))
        if (!files.has(path) && isWrittenByMuster(readFileSync(join(dir, path), 'utf8'))) rmSync(join(dir, path));
      for (const [path, text] of files) {
        mkdirSync(dirname(join(dir, path)), { recursive: true });
        writeFileSync(join(dir, path), text);
      }
      for (const path of files.keys()) if (json) console.log(JSON.stringify({ file: join(dir, path) }));
      for (const path of input.missing)
        console.error(`No test of ${path}: the catalogue says that it refers to a list, and it has no column with ids yet.`);
      if (!json)
        console.log(
          `Wrote ${files.size} files of ${input.lists.length} lists. Next: cd ${dir} && dbt source freshness && dbt build`,
        );
    });
}

/** The files in the folders of a package, as paths within it. */
function sqlAndYaml(dir: string): string[] {
  return ['models', 'macros', 'tests']
    .filter((folder) => existsSync(join(dir, folder)))
    .flatMap((folder) =>
      readdirSync(join(dir, folder), { recursive: true, encoding: 'utf8' }).map(
        (path) => `${folder}/${path.replaceAll('\\', '/')}`,
      ),
    )
    .filter((path) => /\.(sql|yml)$/.test(path));
}

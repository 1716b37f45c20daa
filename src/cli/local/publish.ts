import type { Command } from 'commander';
import { loadCatalogue } from '../../catalogue/load-catalogue.js';
import { loadConfig } from '../../config/config.js';
import { readingUrl } from './reading-url.js';

const HELP = `
Run it as the owner of the tables, with DATABASE_URL. After you add a list to the catalogue, run it again: it adds the missing tables. The
other server needs the tables, then CREATE SUBSCRIPTION: docs/replication.md.`;

const EMBEDDED =
  'No server can subscribe to the embedded PostgreSQL: it listens on this machine alone, and on another port after each start. Set DATABASE_URL to a server of your own.';

const POOLED =
  'DATABASE_URL leads through a pooler, which does not support replication: name PostgreSQL itself in the subscription.';

export function registerPublish(program: Command): void {
  program
    .command('publish')
    .description("make a publication of the mirror's tables, for logical replication into another PostgreSQL")
    .argument('[name]', 'name of the publication', 'muster')
    .option('--json', 'print the outcome as one JSON object a line')
    .addHelpText('after', HELP)
    .action(async (name: string, { json }: { json?: boolean }) => {
      const config = loadConfig(process.env);
      const { endpoints } = loadCatalogue(config.cataloguePath);
      const { publish } = await import('../../db/schema/publication.js');
      const lists = endpoints.map(({ resource }) => resource);
      const { tables, added, walLevel, isPooled } = await publish(await readingUrl(config), name, ['companies', ...lists]);
      if (json) console.log(JSON.stringify({ publication: name, tables, added, wal_level: walLevel }));
      else console.log(`The publication ${name} has ${tables.join(', ')}${added.length === 0 ? ', as before' : ''}.`);
      if (config.databaseUrl === undefined) console.error(EMBEDDED);
      else if (walLevel !== 'logical')
        console.error(
          `No server can subscribe yet: wal_level is ${walLevel}. Set it to logical (ALTER SYSTEM SET wal_level = logical), and restart PostgreSQL.`,
        );
      if (isPooled) console.error(POOLED);
    });
}

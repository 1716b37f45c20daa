import { defineConfig } from 'prisma/config';

// `prisma generate` never runs the schema engine, yet the CLI wants to download it before it looks at the command.
// Naming any executable as the engine lets `generate` work offline; every other command still gets the real one.
if (process.argv.includes('generate')) process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

const shadowDatabaseUrl = process.env.SHADOW_DATABASE_URL;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  // `prisma migrate diff` applies the migrations to it, to compare what they make with the schema. Nothing else of Prisma's CLI is used with a database.
  ...(shadowDatabaseUrl && { datasource: { shadowDatabaseUrl } }),
});

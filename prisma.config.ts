import { defineConfig } from 'prisma/config';

// `prisma generate` never runs the schema engine, yet the CLI wants to download it before it looks at the command.
// Naming any executable as the engine lets `generate` work offline; every other command still gets the real one.
if (process.argv.includes('generate')) process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath;

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
});

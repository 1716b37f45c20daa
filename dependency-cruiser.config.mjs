/**
 * The rooms of src/ from the bottom up. A room imports itself and the rooms of lower ranks, never one of its own rank or above: so every
 * room can be replaced, and no cycle between rooms is possible. A room `api/runs` is that folder. A room `api` beside it is only the files
 * directly in src/api. `app` is src/app.ts, src/shared-parts.ts and src/maintenance.ts, `main` is src/cli/main.ts. CONTRIBUTING.md says what each room is for.
 */
const RANKS = [
  ['core', 'generated'],
  ['db/connection'],
  ['db/statements'],
  ['db/schema', 'db/tables'],
  ['observability'],
  ['pagers', 'embedded'],
  ['privacy'],
  ['catalogue'],
  ['http'],
  ['mirror'],
  ['erasure', 'notifications'],
  ['walks', 'verify', 'oauth', 'warehouse', 'certificates', 'learn'],
  ['unchanged', 'runs'],
  ['api/plumbing', 'jobs', 'sandbox'],
  ['api/runs', 'api/feed'],
  ['api/companies'],
  ['api/operation'],
  ['api'],
  ['dashboard/parts', 'doctor'],
  ['dashboard/pages', 'dashboard/sign-in'],
  ['dashboard'],
  ['config'],
  ['app'],
  ['cli'],
  ['cli/operate'],
  ['cli/serve', 'cli/local'],
  ['main'],
];

/** Rooms that import less than their rank allows. */
const IMPORTS_ONLY = {
  sandbox: { rooms: ['core'], because: 'were it to share a name with the client side, one typo would satisfy both sides' },
  'db/tables': {
    rooms: ['core', 'generated', 'db/connection', 'db/statements'],
    because: 'a statement knows its table, and nothing of what is done with the rows',
  },
  verify: {
    rooms: [
      'core',
      'observability',
      'db/connection',
      'db/statements',
      'db/tables',
      'privacy',
      'pagers',
      'catalogue',
      'http',
      'mirror',
    ],
    because: 'it looks for faults of walks, and shares none of their reading, comparing and writing',
  },
  learn: {
    rooms: ['core', 'privacy', 'pagers', 'catalogue', 'http'],
    because: 'it asks a list what it is, and stores nothing',
  },
  unchanged: {
    rooms: [
      'core',
      'generated',
      'observability',
      'db/connection',
      'db/statements',
      'db/tables',
      'catalogue',
      'privacy',
      'pagers',
      'mirror',
      'walks',
    ],
    because: 'it makes walks faster, and knows neither who asks for them nor how requests are sent',
  },
};

/** Rooms that fewer may import than the ranks allow. */
const IMPORTED_ONLY_BY = {
  config: {
    rooms: ['app', 'cli', 'cli/operate', 'cli/serve', 'cli/local', 'main'],
    because: 'rooms are handed their settings, so that each can be built without an environment',
  },
  generated: {
    rooms: [
      'db/connection',
      'db/statements',
      'db/schema',
      'db/tables',
      'mirror',
      'erasure',
      'walks',
      'unchanged',
      'oauth',
      'runs',
      'warehouse',
      'api/plumbing',
      'api/runs',
      'api/companies',
      'api/operation',
    ],
    because: 'the rooms that have no business with the database cannot depend on its shape',
  },
  unchanged: {
    rooms: ['app'],
    because: 'it is a folder that can be deleted: walks ask an interface, and only the composition root knows who answers',
  },
};

const HOMELESS = 'Give the folder a rank in dependency-cruiser.config.mjs and a line in CONTRIBUTING.md, or move the file.';

/** A pattern of the paths of rooms. A room that has sub-rooms is only its own files. */
function paths(...rooms) {
  const path = (room) => {
    if (room === 'app') return '(?:app|shared-parts|maintenance)\\.tsx?$';
    if (room === 'main') return 'cli/main\\.ts$';
    if (room === 'cli') return 'cli/(?!main\\.ts)[^/]+$';
    return RANKS.flat().some((other) => other.startsWith(`${room}/`)) ? `${room}/[^/]+$` : `${room}/`;
  };
  return `^src/(${rooms.map(path).join('|')})`;
}

const rankRules = RANKS.flatMap((rank, i) =>
  rank.map((room) => ({
    name: `${room}-imports-lower-rooms-only`,
    comment: `${room} imports only what stands below it in RANKS, nothing beside or above it.`,
    from: { path: paths(room) },
    to: { path: '^src/', pathNot: paths(room, ...RANKS.slice(0, i).flat()) },
  })),
);

const importerRules = Object.entries(IMPORTS_ONLY).map(([room, { rooms, because }]) => ({
  name: `${room}-imports-only-what-it-may`,
  comment: `${room} imports only ${rooms.join(', ')}: ${because}.`,
  from: { path: paths(room) },
  to: { path: '^src/', pathNot: paths(room, ...rooms) },
}));

const importedRules = Object.entries(IMPORTED_ONLY_BY).map(([room, { rooms, because }]) => ({
  name: `${room}-is-imported-only-where-it-may`,
  comment: `Only ${rooms.join(', ')} import ${room}: ${because}.`,
  from: { path: '^src/', pathNot: paths(room, ...rooms) },
  to: { path: paths(room) },
}));

export default {
  forbidden: [
    ...rankRules,
    ...importerRules,
    ...importedRules,
    {
      name: 'no-cycle',
      comment: 'Type-only imports count: two files that know each other are one.',
      from: { pathNot: '^src/generated/' },
      to: { circular: true },
    },
    {
      name: 'verify-reads-by-itself',
      comment: 'Were it to read pages by the scanner of walks, both would misread a page alike.',
      from: { path: '^src/verify/' },
      to: { path: '^src/pagers/(json-scanner|read-page|key-hashes)' },
    },
    { name: 'importers-have-a-room', comment: HOMELESS, from: { path: '^src/', pathNot: paths(...RANKS.flat()) }, to: {} },
    { name: 'what-is-imported-has-a-room', comment: HOMELESS, from: {}, to: { path: '^src/', pathNot: paths(...RANKS.flat()) } },
    {
      name: 'src-imports-src-only',
      comment: 'What is compiled would not find it.',
      from: { path: '^src/' },
      to: { path: '^(test|scripts|bench)/' },
    },
    { name: 'every-import-resolves', from: { path: '^src/' }, to: { couldNotResolve: true, path: '^\\.' } },
  ].map((rule) => ({ severity: 'error', ...rule })),
  options: {
    doNotFollow: 'node_modules',
    // Type-only imports disappear when TypeScript is compiled, and count here.
    tsPreCompilationDeps: true,
  },
};

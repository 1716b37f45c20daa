/**
 * Whether a .dockerignore keeps a file out of the build context. `file` is relative to the context, with forward slashes.
 * As in Docker, the last pattern that matches the file or a folder above it decides.
 */
export function dockerignore(source: string): (file: string) => boolean {
  const patterns = source
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ excludes: !line.startsWith('!'), matches: glob(line.replace(/^!/, '').replace(/^\/|\/$/g, '')) }));
  return (file) => {
    const parts = file.split('/');
    const ways = parts.map((_, i) => parts.slice(0, i + 1).join('/'));
    return patterns.findLast(({ matches }) => ways.some((way) => matches.test(way)))?.excludes ?? false;
  };
}

function glob(pattern: string): RegExp {
  const source = pattern.replaceAll(/\*\*\/?|[*?]|[.+^${}()|[\]\\]/g, (sign) => {
    if (sign === '**/') return '(?:.*/)?';
    if (sign === '**') return '.*';
    if (sign === '*') return '[^/]*';
    return sign === '?' ? '[^/]' : `\\${sign}`;
  });
  return new RegExp(`^${source}$`);
}

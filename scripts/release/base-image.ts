const LINE = /^ARG NODE_IMAGE=(\S+)$/m;
const DIGEST = /^sha256:[0-9a-f]{64}$/;

/** The base image of a Dockerfile, and its digest where it is pinned. Throws where the Dockerfile names none. */
export function baseImage(dockerfile: string): { readonly tag: string; readonly digest: string | undefined } {
  const [, image] = LINE.exec(dockerfile) ?? [];
  if (image === undefined) throw new Error('Dockerfile has no line "ARG NODE_IMAGE=…"');
  const [tag = '', digest] = image.split('@');
  return { tag, digest: digest !== undefined && DIGEST.test(digest) ? digest : undefined };
}

/** The Dockerfile with its base image pinned to a digest. Throws where that is not one. */
export function pinned(dockerfile: string, digest: string): string {
  if (!DIGEST.test(digest)) throw new Error(`"${digest}" is no digest; one is sha256: and 64 hexadecimal digits`);
  return dockerfile.replace(LINE, `ARG NODE_IMAGE=${baseImage(dockerfile).tag}@${digest}`);
}

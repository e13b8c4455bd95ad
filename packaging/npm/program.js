// Finds the program in the package of this platform.
const PACKAGES = { "linux x64": "forkhestra-linux-x64", "linux arm64": "forkhestra-linux-arm64" };

exports.program = () => {
  const platform = `${process.platform} ${process.arch}`;
  const name = PACKAGES[platform];
  if (!name) throw new Error(`there is no package for ${platform}; on Windows, install it in WSL2`);
  try {
    return require.resolve(`${name}/bin/forkhestra`);
  } catch {
    throw new Error(`the package ${name} is not installed; install without --omit=optional`);
  }
};

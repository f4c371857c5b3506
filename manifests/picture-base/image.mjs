// Pictures in and out: PNG and JPEG, bounded.
import jpeg from "jpeg-js";
import { PNG } from "pngjs";

export const MAX_BYTES = 16 << 20;
const MAX_PIXELS = 16e6;

export class InputError extends Error {}

function sizeOfPng(bytes) {
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

/** {width, height, data}: data is RGBA, four bytes a pixel. */
export function decode(bytes) {
  const isPng = bytes.length > 24 && bytes.readUInt32BE(0) === 0x89504e47;
  const isJpeg = bytes.length > 4 && bytes.readUInt16BE(0) === 0xffd8;
  if (!isPng && !isJpeg)
    throw new InputError("neither a PNG nor a JPEG picture");
  try {
    if (isJpeg)
      return jpeg.decode(bytes, { useTArray: true, maxResolutionInMP: MAX_PIXELS / 1e6, maxMemoryUsageInMB: 512 });
    const { width, height } = sizeOfPng(bytes);
    if (width * height > MAX_PIXELS)
      throw new Error(`${width}x${height} pixels, more than ${MAX_PIXELS}`);
    return PNG.sync.read(bytes);
  } catch (error) {
    throw new InputError(error.message);
  }
}

export function encodePng({ width, height, data }) {
  const png = new PNG({ width, height });
  png.data = Buffer.from(data);
  return PNG.sync.write(png);
}

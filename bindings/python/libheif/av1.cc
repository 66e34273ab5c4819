// Adds libheif's own decoder for AV1 to a libheif that was built without it.
#include "libheif/heif.h"
#include "libheif/heif_plugin.h"
#include "decoder_dav1d.h"

extern "C" __attribute__((visibility("default"))) int locdiff_register_av1() {
  // libheif forgets all decoders when its last user has left: this one never does.
  heif_init(nullptr);
  return heif_register_decoder_plugin(get_decoder_plugin_dav1d()).code;
}

// libheif keeps its own to itself.
heif_error heif_error_ok = {heif_error_Ok, heif_suberror_Unspecified, "Success"};

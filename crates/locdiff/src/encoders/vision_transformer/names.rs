//! What the parts of a Vision Transformer are called in the checkpoints that people have.

/// Who wrote the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// CLIP by Hugging Face `transformers`.
    HuggingFaceClip,
    /// DINOv2 by Hugging Face `transformers`, with registers or without.
    HuggingFaceDinov2,
    /// CLIP by OpenAI and OpenCLIP.
    OriginalClip,
    /// DINOv2 by its authors.
    OriginalDinov2,
}

/// Names of tensors in one checkpoint.
#[derive(Debug, Clone)]
pub(super) struct Names {
    layout: Layout,
    prefix: String,
}

/// Names within a layer. A linear map or norm `x` has the tensors `x.weight` and `x.bias`.
pub(super) struct LayerNames {
    pub(super) norm_attention: String,
    /// Weights and biases: one matrix for all three, or one each.
    pub(super) qkv: Vec<(String, String)>,
    pub(super) out: String,
    pub(super) scale_attention: Option<String>,
    pub(super) norm_mlp: String,
    pub(super) up: String,
    pub(super) down: String,
    pub(super) scale_mlp: Option<String>,
}

impl LayerNames {
    pub(super) fn out_weight(&self) -> String {
        format!("{}.weight", self.out)
    }
}

impl Names {
    /// By the name of the matrix for patches, with whatever stands before it.
    pub(super) fn detect<'a>(mut names: impl Iterator<Item = &'a str>) -> Option<Names> {
        let markers = [
            ("embeddings.patch_embedding.weight", Layout::HuggingFaceClip),
            ("embeddings.patch_embeddings.projection.weight", Layout::HuggingFaceDinov2),
            ("conv1.weight", Layout::OriginalClip),
            ("patch_embed.proj.weight", Layout::OriginalDinov2),
        ];
        names.find_map(|name| {
            let (marker, layout) = markers.iter().find(|(marker, _)| name.ends_with(marker))?;
            let prefix = name[..name.len() - marker.len()].to_owned();
            // `…conv1.weight` is also what any convolutional network has; CLIP's is `visual.`
            let plausible = *layout != Layout::OriginalClip || prefix.ends_with("visual.");
            plausible.then_some(Names { layout: *layout, prefix })
        })
    }

    pub(super) fn is_clip(&self) -> bool {
        matches!(self.layout, Layout::HuggingFaceClip | Layout::OriginalClip)
    }

    fn by_layout(&self, names: [&str; 4]) -> String {
        format!("{}{}", self.prefix, names[self.layout as usize])
    }

    pub(super) fn patches(&self) -> String {
        self.by_layout([
            "embeddings.patch_embedding.weight",
            "embeddings.patch_embeddings.projection.weight",
            "conv1.weight",
            "patch_embed.proj.weight",
        ])
    }

    pub(super) fn patches_bias(&self) -> Option<String> {
        let name = self.by_layout([
            "",
            "embeddings.patch_embeddings.projection.bias",
            "",
            "patch_embed.proj.bias",
        ]);
        (!self.is_clip()).then_some(name)
    }

    pub(super) fn class_token(&self) -> String {
        self.by_layout([
            "embeddings.class_embedding",
            "embeddings.cls_token",
            "class_embedding",
            "cls_token",
        ])
    }

    pub(super) fn registers(&self) -> String {
        self.by_layout(["", "embeddings.register_tokens", "", "register_tokens"])
    }

    pub(super) fn positions(&self) -> String {
        self.by_layout([
            "embeddings.position_embedding.weight",
            "embeddings.position_embeddings",
            "positional_embedding",
            "pos_embed",
        ])
    }

    pub(super) fn norm_before(&self) -> Option<String> {
        self.is_clip().then(|| self.by_layout(["pre_layrnorm", "", "ln_pre", ""]))
    }

    pub(super) fn norm_after(&self) -> String {
        self.by_layout(["post_layernorm", "layernorm", "ln_post", "norm"])
    }

    /// The name, and whether it is `[inputs, outputs]` rather than the other way round.
    pub(super) fn projection(&self) -> Option<(String, bool)> {
        match self.layout {
            // It stands beside the tower, not in it.
            Layout::HuggingFaceClip => {
                let outer = self.prefix.strip_suffix("vision_model.").unwrap_or(&self.prefix);
                Some((format!("{outer}visual_projection.weight"), false))
            }
            Layout::OriginalClip => Some((format!("{}proj", self.prefix), true)),
            _ => None,
        }
    }

    pub(super) fn layer(&self, number: usize) -> LayerNames {
        let stem = self.by_layout([
            "encoder.layers.",
            "encoder.layer.",
            "transformer.resblocks.",
            "blocks.",
        ]);
        let name = |names: [&str; 4]| format!("{stem}{number}.{}", names[self.layout as usize]);
        let pair = |stem: &str, joint: &str| {
            let stem = name([stem; 4]);
            (format!("{stem}{joint}weight"), format!("{stem}{joint}bias"))
        };
        let qkv = match self.layout {
            Layout::HuggingFaceClip => {
                ["q", "k", "v"].map(|k| pair(&format!("self_attn.{k}_proj"), ".")).to_vec()
            }
            Layout::HuggingFaceDinov2 => ["query", "key", "value"]
                .map(|k| pair(&format!("attention.attention.{k}"), "."))
                .to_vec(),
            Layout::OriginalClip => vec![pair("attn.in_proj", "_")],
            Layout::OriginalDinov2 => vec![pair("attn.qkv", ".")],
        };
        LayerNames {
            norm_attention: name(["layer_norm1", "norm1", "ln_1", "norm1"]),
            qkv,
            out: name([
                "self_attn.out_proj",
                "attention.output.dense",
                "attn.out_proj",
                "attn.proj",
            ]),
            scale_attention: (!self.is_clip())
                .then(|| name(["", "layer_scale1.lambda1", "", "ls1.gamma"])),
            norm_mlp: name(["layer_norm2", "norm2", "ln_2", "norm2"]),
            up: name(["mlp.fc1", "mlp.fc1", "mlp.c_fc", "mlp.fc1"]),
            down: name(["mlp.fc2", "mlp.fc2", "mlp.c_proj", "mlp.fc2"]),
            scale_mlp: (!self.is_clip())
                .then(|| name(["", "layer_scale2.lambda1", "", "ls2.gamma"])),
        }
    }
}

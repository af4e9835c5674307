//! The vendors of images that need no code of their own.

use super::vendor::{BytesField, ImageVendor, PromptField, SizeField};

/// What Stability takes since its second version.
pub(super) const STABILITY_RATIOS: &[(u32, u32)] =
    &[(1, 1), (16, 9), (21, 9), (2, 3), (3, 2), (4, 5), (5, 4), (9, 16), (9, 21)];

/// Its engines of the first version.
pub static STABILITY_FIRST: ImageVendor = ImageVendor {
    name: "stability_v1_images",
    model: None,
    prompt: PromptField::Weighted,
    count: Some("samples"),
    size: SizeField::Sides("width", "height"),
    fields: &[
        ("seed", "seed"),
        ("steps", "steps"),
        ("cfg_scale", "cfg_scale"),
        ("sampler", "sampler"),
        ("style", "style_preset"),
        ("style_preset", "style_preset"),
        ("clip_guidance_preset", "clip_guidance_preset"),
    ],
    bytes: BytesField::None,
    is_form: false,
    images: "/artifacts",
};

const STABILITY_FIELDS: &[(&str, &str)] = &[
    ("negative_prompt", "negative_prompt"),
    ("seed", "seed"),
    ("output_format", "output_format"),
    ("style", "style_preset"),
    ("style_preset", "style_preset"),
    ("cfg_scale", "cfg_scale"),
    ("mode", "mode"),
    ("strength", "strength"),
];

pub static STABILITY_SECOND: ImageVendor = ImageVendor {
    name: "stability_v2_images",
    model: None,
    prompt: PromptField::Plain,
    count: None,
    size: SizeField::Ratio(STABILITY_RATIOS),
    fields: STABILITY_FIELDS,
    bytes: BytesField::None,
    is_form: true,
    images: "/image",
};

/// One path serves several models, which the form names.
pub static STABILITY_SD3: ImageVendor = ImageVendor {
    name: "stability_sd3_images",
    model: Some("model"),
    prompt: PromptField::Plain,
    count: None,
    size: SizeField::Ratio(STABILITY_RATIOS),
    fields: STABILITY_FIELDS,
    bytes: BytesField::None,
    is_form: true,
    images: "/image",
};

pub static SEGMIND: ImageVendor = ImageVendor {
    name: "segmind_images",
    model: None,
    prompt: PromptField::Plain,
    count: Some("samples"),
    size: SizeField::Sides("img_width", "img_height"),
    fields: &[
        ("negative_prompt", "negative_prompt"),
        ("seed", "seed"),
        ("style", "style"),
        ("steps", "num_inference_steps"),
        ("num_inference_steps", "num_inference_steps"),
        ("guidance_scale", "guidance_scale"),
        ("scheduler", "scheduler"),
        ("strength", "strength"),
        ("refiner", "refiner"),
        ("high_noise_fraction", "high_noise_fraction"),
    ],
    bytes: BytesField::Always("base64"),
    is_form: false,
    images: "/image",
};

pub static FIREWORKS: ImageVendor = ImageVendor {
    name: "fireworks_images",
    model: None,
    prompt: PromptField::Plain,
    count: Some("samples"),
    size: SizeField::Sides("width", "height"),
    fields: &[
        ("negative_prompt", "negative_prompt"),
        ("seed", "seed"),
        ("steps", "steps"),
        ("cfg_scale", "cfg_scale"),
        ("sampler", "sampler"),
        ("safety_check", "safety_check"),
    ],
    bytes: BytesField::None,
    is_form: false,
    images: "",
};

/// Its models of the FLUX line.
pub static FIREWORKS_WORKFLOW: ImageVendor = ImageVendor {
    name: "fireworks_workflow_images",
    model: None,
    prompt: PromptField::Plain,
    count: None,
    size: SizeField::Ratio(&[
        (1, 1),
        (16, 9),
        (21, 9),
        (3, 2),
        (2, 3),
        (4, 5),
        (5, 4),
        (9, 16),
        (9, 21),
        (4, 3),
        (3, 4),
    ]),
    fields: &[
        ("seed", "seed"),
        ("steps", "num_inference_steps"),
        ("num_inference_steps", "num_inference_steps"),
        ("guidance_scale", "guidance_scale"),
    ],
    bytes: BytesField::None,
    is_form: false,
    images: "/base64",
};

pub static SILICONFLOW: ImageVendor = ImageVendor {
    name: "siliconflow_images",
    model: None,
    prompt: PromptField::Plain,
    count: Some("batch_size"),
    size: SizeField::Whole("image_size"),
    fields: &[
        ("negative_prompt", "negative_prompt"),
        ("seed", "seed"),
        ("steps", "num_inference_steps"),
        ("num_inference_steps", "num_inference_steps"),
        ("guidance_scale", "guidance_scale"),
        ("prompt_enhancement", "prompt_enhancement"),
    ],
    bytes: BytesField::None,
    is_form: false,
    images: "/images",
};

pub static HYPERBOLIC: ImageVendor = ImageVendor {
    name: "hyperbolic_images",
    model: Some("model_name"),
    prompt: PromptField::Plain,
    count: None,
    size: SizeField::Sides("width", "height"),
    fields: &[
        ("negative_prompt", "negative_prompt"),
        ("prompt_2", "prompt_2"),
        ("negative_prompt_2", "negative_prompt_2"),
        ("backend", "backend"),
        ("image", "image"),
        ("strength", "strength"),
        ("seed", "seed"),
        ("steps", "steps"),
        ("cfg_scale", "cfg_scale"),
        ("sampler", "sampler"),
        ("style", "style_preset"),
        ("style_preset", "style_preset"),
        ("enable_refiner", "enable_refiner"),
        ("controlnet_name", "controlnet_name"),
        ("controlnet_image", "controlnet_image"),
        ("loras", "loras"),
    ],
    bytes: BytesField::None,
    is_form: false,
    images: "/images",
};

pub static FAL: ImageVendor = ImageVendor {
    name: "fal_images",
    model: None,
    prompt: PromptField::Plain,
    count: Some("num_images"),
    size: SizeField::Object("image_size"),
    fields: &[
        ("negative_prompt", "negative_prompt"),
        ("aspect_ratio", "aspect_ratio"),
        ("seed", "seed"),
        ("steps", "num_inference_steps"),
        ("num_inference_steps", "num_inference_steps"),
        ("guidance_scale", "guidance_scale"),
        ("output_format", "output_format"),
        ("enable_safety_checker", "enable_safety_checker"),
    ],
    bytes: BytesField::OnWish("sync_mode"),
    is_form: false,
    images: "/images",
};

/// Some of its models answer with the image itself.
pub static WORKERS: ImageVendor = ImageVendor {
    name: "workers_images",
    model: None,
    prompt: PromptField::Plain,
    count: None,
    size: SizeField::Sides("width", "height"),
    fields: &[
        ("negative_prompt", "negative_prompt"),
        ("seed", "seed"),
        ("steps", "steps"),
        ("num_steps", "num_steps"),
        ("guidance", "guidance"),
        ("strength", "strength"),
        ("image_b64", "image_b64"),
    ],
    bytes: BytesField::None,
    is_form: false,
    images: "/result/image",
};
